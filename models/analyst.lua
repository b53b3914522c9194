-- Plays the analyst of workflows/energy.lua: it looks, writes a program, runs it, looks at what came out and says
-- what it found. The words are fixed; the program is real and runs in the sandbox on the real input.
-- A step is one answer of the model; steps in a list are one answer: what it says, and the tools it asks for.
local test = require "tidemill.test"

return test.script {
  {
    test.say "I look at the input and at what is known about the building first.",
    test.shell "head -n 4 input/building_energy.csv && wc -l input/building_energy.csv && cat reference/tariff.md",
  },
  {
    test.say("Use depends on the hour, the kind of day and the outdoor temperature. I write a program that learns the "
      .. "expected use from the file itself and keeps only what lies far outside it."),
    test.call("write_file", { path = "analyse.py", content = test.read "models/analyse.py" }),
  },
  {
    test.say "Now I run it.",
    test.shell "python3 analyse.py",
  },
  {
    test.say "I check what was written.",
    test.shell "ls -l output && head -n 3 output/anomalies.csv",
    test.shell "head -n 20 output/anomaly_report.md",
  },
  test.say("I found the events that output/anomaly_report.md explains and saved all three files. Each hour was compared "
    .. "with the use expected for its hour, kind of day and outdoor temperature."),
}
