#!/bin/sh
# Judges a task of the sample project by what its files do.
set -u
expect() { # WHAT WANTED GOT
	[ "$2" = "$3" ] && return
	printf 'check: %s: wanted "%s", got "%s"\n' "$1" "$2" "$3"
	exit 1
}
case $LOPEN_TASK_ID in
counting/split-a-text-into-words) expect "number of words" 16 "$(sh words.sh text.txt | wc -l | tr -d ' ')" ;;
counting/ignore-letter-case) expect "upper-case words" "" "$(sh words.sh text.txt | grep '[A-Z]')" ;;
report/print-the-counts/count-equal-words) expect "count of dog" "2 dog" "$(sh tally.sh text.txt | grep ' dog$')" ;;
report/print-the-counts/sort-by-count-then-by-word) expect "first line" "4 the" "$(sh tally.sh text.txt | sed -n 1p)" ;;
report/limit-the-list-with-n) expect "lines of -n 3" 3 "$(sh tally.sh -n 3 text.txt | wc -l | tr -d ' ')" ;;
documentation/write-readme-md) expect "the example in README.md" "4 the" "$(eval "$(sed -n 's/^    //p' README.md)" | sed -n 1p)" ;;
esac
