#!/bin/sh
# A stand-in for a coding agent: it reads a prompt on stdin and writes the files
# that the task asks for. Its first try at sorting is wrong, as a first try may be.
set -eu
cat >prompt.last

words() {
	cat >words.sh <<SH
#!/bin/sh
# Prints the words of a file, one a line.
tr -cs '[:alpha:]' '\n' <"\$1" | sed '/^\$/d'$1
SH
}

tally() {
	cat >tally.sh <<SH
#!/bin/sh
# Counts the words of a file.
n=0
if [ "\${1-}" = -n ]; then n=\$2; shift 2; fi
[ -r "\${1-}" ] || { echo "tally.sh: cannot read \${1-}" >&2; exit 1; }
sh "\$(dirname "\$0")/words.sh" "\$1" | sort | uniq -c | sed 's/^ *//'$1
SH
}

case $LOPEN_TASK_ID in
counting/split-a-text-into-words) words '' ;;
counting/ignore-letter-case) words " | tr '[:upper:]' '[:lower:]'" ;;
report/print-the-counts/count-equal-words) tally '' ;;
report/print-the-counts/sort-by-count-then-by-word)
	if [ "$LOPEN_ATTEMPT" = 1 ]; then tally ' | sort -n'; else tally ' | sort -k1,1nr -k2'; fi ;;
report/limit-the-list-with-n)
	tally ' | sort -k1,1nr -k2 | { if [ "$n" -gt 0 ]; then head -n "$n"; else cat; fi; }' ;;
documentation/write-readme-md)
	printf '# tally\n\n    sh tally.sh -n 3 text.txt\n' >README.md ;;
*)
	echo "agent: I do not know the task $LOPEN_TASK_ID" >&2
	exit 1 ;;
esac
printf '{"inputTokens": %d, "outputTokens": %d, "model": "stand-in"}\n' \
	"$(wc -c <prompt.last)" 200 >"$LOPEN_METRICS_FILE"
echo "agent: wrote the files for \"$LOPEN_TASK\""
