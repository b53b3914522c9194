-- Plays the agent of workflows/hello.lua: each step is one answer of the model.
local test = require "tidemill.test"

return test.script {
  test.shell "wc input/text.txt",
  test.shell [[
mkdir -p output && python3 - <<'EOF'
import collections, csv, re
text = open("input/text.txt", encoding="utf-8", errors="replace").read().lower()
counts = collections.Counter(re.findall(r"[^\W_]+", text))
with open("output/words.csv", "w", newline="") as file:
    table = csv.writer(file)
    table.writerow(["word", "count"])
    table.writerows(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
EOF]],
  test.say "Saved output/words.csv.",
}
