-- Plays an analyst who adds an hour that the input does not hold. The workflow's `validate` finds it, the finding
-- goes back to the model, and the second answer passes.
local test = require "tidemill.test"

return test.script {
  {
    test.say "I write a program that learns the expected use and keeps what lies far outside it.",
    test.call("write_file", { path = "analyse.py", content = test.read "models/analyse.py" }),
  },
  {
    test.say "I run it, and add an hour I remember.",
    test.shell "python3 analyse.py",
    test.shell "echo '2025-02-30 04:00:00,99.0,5.0,40.0,59.0,12.0,7,made up' >> output/anomalies.csv",
  },
  test.say "Saved the three files.",
  {
    test.say "That hour is not in the input: there is no 30 February. I take it out.",
    test.shell "sed -i '/^2025-02-30/d' output/anomalies.csv && tail -n 2 output/anomalies.csv",
  },
  test.say "Corrected: every row of output/anomalies.csv is now an hour of the input.",
}
