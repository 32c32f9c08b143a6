#!/bin/sh
# entry.py for a user's program in another language than Python: `muster_entry.sh` in the source archive.
IFS= read -r program < muster_entry.program
# The toolkit makes only this script executable.
chmod 777 "./$program"
python=$(command -v python3 || command -v python)
if [ -n "$python" ] && "$python" -c "import sys; sys.exit(sys.version_info < (3, 8))" 2>/dev/null; then
    exec "$python" -I -S muster_entry.pyz log-rank -- "./$program" "$@"
fi
exec "./$program" "$@"
