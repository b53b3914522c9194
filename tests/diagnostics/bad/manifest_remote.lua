local mill = require "tidemill"
local sum = string.rep("0", 64)

return mill.workflow {
  name = "bad",
  image = mill.image "alpine:3",
  agent = { model = "tide" },
  prompt = "Count the rows.",
  manifest = {
    ["a"] = mill.url "https://example.org/a.csv",
    ["b"] = mill.url("https://example.org/a.csv", { max = "1GB" }),
    ["c"] = mill.url("https://example.org/a.csv", { sha256 = "abc" }),
    ["d"] = mill.url("ftp://example.org/a.csv", { sha256 = sum }),
    ["e"] = mill.url("example.org/a.csv", { sha256 = sum }),
    ["f"] = mill.url("https://me:hunter2@example.org/a.csv", { sha256 = sum }),
    ["g/"] = mill.url("https://example.org/a.csv", { sha256 = sum }),
    ["h/"] = mill.git("https://me:hunter2@example.org/r.git", { ref = "main" }),
    ["i/"] = mill.git("me:hunter2@example.org/r.git", { ref = "main" }),
    ["j/"] = mill.git("git@example.org:team/r.git", { ref = "main" }),
    ["k/"] = mill.git("ssh://-oProxyCommand=x/r.git", { ref = "main" }),
    ["l/"] = mill.git("ext::sh -c id", { ref = "main" }),
    ["m/"] = mill.git("http://example.org/r.git", { ref = "main" }),
    ["n/"] = mill.git("/srv/git/r.git", { ref = "main" }),
    ["o/"] = mill.git("../other", { ref = "main" }),
    ["p/"] = mill.git("https://example.org/r.git", { ref = "--upload-pack=id" }),
    ["q/"] = mill.git("https://example.org/r.git", { ref = "main~1" }),
    ["r/"] = mill.git("https://example.org/r.git", {}),
    ["s/"] = mill.git("https://example.org/r.git", { ref = "main", path = "../up" }),
    ["w/"] = mill.git("https://example.org/r.git", { ref = "main", path = "sub/.git/config" }),
    ["t/"] = mill.git("https://example.org/r.git", { ref = "main", path = "sub", history = true }),
    ["u"] = mill.git("https://example.org/r.git", { ref = "main" }),
    ["v/"] = mill.git("file://host/r.git", { ref = "main" }),
  },
}
