#!/bin/sh
# Fails if the new answers are worse than the old ones.
#
#   check_bot.sh OLD.jsonl NEW.jsonl [METRIC] [MARGIN]
#
# Both files hold answers to the same questions: same id, or same context. Exit 0: not worse, or
# cannot tell. Exit 1: worse. Exit 2: the files cannot be compared. What was found lies in runs/.
set -eu
old=$1 new=$2 metric=${3:-judge} margin=${4:-0.1}

dialeval score "$old" -m "$metric" -o runs/old --overwrite --quiet
dialeval score "$new" -m "$metric" -o runs/new --overwrite --quiet
dialeval compare runs/old runs/new --fail-if-worse "$metric" --margin "$margin" --worst 5 \
  --junit runs/compare.xml --github-summary "${GITHUB_STEP_SUMMARY:-runs/summary.md}"
