#!/bin/sh
# Runs the main job on a fresh copy of the sample project: sh run.sh LOPEN
set -eu
lopen=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d "${TMPDIR:-/tmp}/lopen-sample-XXXXXX")
cp -R "$here/project/." "$dir"
unset LOPEN_SESSION_ID LOPEN_MODULE || true
XDG_STATE_HOME=$dir/.xdg
export XDG_STATE_HOME
cd "$dir"
"$lopen" -C "$dir" plan create tally --from plan.md
"$lopen" -C "$dir" run tally --no-resume --check "sh '$here/check.sh'" -- sh "$here/agent.sh"
echo
"$lopen" -C "$dir" plan show tally
echo
echo "look around: cd $dir && $lopen session show"
