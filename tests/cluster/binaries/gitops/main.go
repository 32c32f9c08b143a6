// Prints the health of Kubernetes objects as Flux and Argo CD compute it.
//
// The argument is a file with Argo CD's health check in Lua. Each line of standard input is an object in JSON. Each line
// of standard output is {"kstatus": ..., "argo": ..., "message": ...}. Flux uses kstatus.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type health struct {
	Kstatus string `json:"kstatus"`
	Argo    string `json:"argo"`
	Message string `json:"message"`
}

func main() {
	script, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16*1024*1024)
	for lines.Scan() {
		result, err := compute(lines.Bytes(), string(script))
		if err != nil {
			log.Fatal(err)
		}
		text, err := json.Marshal(result)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(text))
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
}

func compute(text []byte, script string) (health, error) {
	object := map[string]any{}
	if err := json.Unmarshal(text, &object); err != nil {
		return health{}, err
	}
	argo, message, err := runLua(object, script)
	if err != nil {
		return health{}, err
	}
	resource := &unstructured.Unstructured{}
	if err := resource.UnmarshalJSON(text); err != nil {
		return health{}, err
	}
	result, err := status.Compute(resource)
	if err != nil {
		return health{}, err
	}
	return health{result.Status.String(), argo, message}, nil
}

// Argo CD also opens only the libraries without input and output.
func runLua(object map[string]any, script string) (string, string, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.StringLibName: lua.OpenString,
	} {
		state.Push(state.NewFunction(open))
		state.Push(lua.LString(name))
		state.Call(1, 0)
	}
	state.SetGlobal("obj", convert(state, object))
	if err := state.DoString(script); err != nil {
		return "", "", err
	}
	result, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return "", "", fmt.Errorf("the check returned no table")
	}
	return result.RawGetString("status").String(), result.RawGetString("message").String(), nil
}

func convert(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, entry := range value {
			table.RawSetString(key, convert(state, entry))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, entry := range value {
			table.Append(convert(state, entry))
		}
		return table
	case string:
		return lua.LString(value)
	case float64:
		return lua.LNumber(value)
	case bool:
		return lua.LBool(value)
	}
	return lua.LNil
}
