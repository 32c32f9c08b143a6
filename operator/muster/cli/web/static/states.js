// The states of ranks in the order of their codes, as in muster/cli/board/frame.py.
export const STATES = ["Unknown", "Pending", "Starting", "Running", "Succeeded", "Failed", "Stopped"];
export const FAILED = STATES.indexOf("Failed");
export const UNKNOWN = -1;
