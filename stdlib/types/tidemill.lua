---@meta tidemill

-- Workflows: what starts them, where they run, what they are given and what must come out.

---What `mill.workflow` takes.
---@class tidemill.Workflow
---@field name string A word of `a-z`, `0-9`, `-` and `_`, unique in the project.
---@field description? string One line for lists.
---@field triggers? tidemill.Trigger[] What starts it besides `tidemill run`.
---@field image tidemill.Image Where its commands run: mill.image.
---@field manifest? table<string, tidemill.Content> What is placed in /workspace before the agent starts: path = content.
---@field agent tidemill.Agent Who does the work: { model = ... }.
---@field prompt string|tidemill.Content|fun(run: tidemill.Run): string What the agent is asked: text, a mill.file, or a function of the run.
---@field limits? tidemill.Limits What it may use.
---@field network? tidemill.Network What its commands may reach; nothing without.
---@field guardrails? (tidemill.Guardrail|tidemill.InlineGuardrail)[] What is checked before something happens, in order.
---@field outputs? table<string, tidemill.Expectation> What must come out: path in /workspace = expectation.
---@field validate? fun(artifacts: table<string, tidemill.Artifact>, run: tidemill.Run): (tidemill.Finding|tidemill.Finding[]|nil) A check across files: returns nothing, a finding, or a list of findings.
---@field repair? tidemill.Repair What happens when a check fails.

---Who does the work.
---@class tidemill.Agent
---@field name? string A name for logs.
---@field model string A model of tidemill.toml, or the provider's own name for one.
---@field instructions? string|tidemill.Content What it is told before the prompt: text or a `mill.file`.
---@field max_turns? integer Model calls at most, repairs included; 30 without.

---What one run may use, repairs included.
---@class tidemill.Limits
---@field cost_usd? number Dollars for models. Needs a known price.
---@field tokens? integer Tokens, read and written together.
---@field wall? string|number Wall time: `10m`, or seconds; 30 minutes without.
---@field command? string|number Wall time of one command; 2 minutes without.
---@field memory? string|integer Memory of the sandbox: `2GiB`, or bytes.
---@field cpus? number Processor cores; 2 without.
---@field pids? integer Processes at once; 256 without.
---@field disk? string|integer Bytes that fit in /workspace; 1 GiB without.

---What the sandbox may reach; nothing without.
---@class tidemill.Network
---@field allow? string[] Names: `api.example.com` (ports 443 and 80), `*.example.org:8443` (all names below it, one port).
---@field learn? boolean Allows everything public, and prints at the end what the run needed.
---@field secrets? table<string, tidemill.Secret> Credentials: environment variable of the sandbox = mill.secret("NAME", { host = ... }).

---Where the value of a secret may go, in headers of requests.
---@class tidemill.Bound
---@field host string The one host it may go to: `api.example.com`, or with a port.
---@field methods? string[] Methods it may go with, like `GET`; any without.
---@field path? string The path it may go to; `/v1/*` for all that begin with `/v1/`. Any without.

---What happens when a check fails.
---@class tidemill.Repair
---@field attempts integer How often findings go back to the agent.

---What `mill.drop` takes.
---@class tidemill.Drop
---@field glob string Pattern relative to the inbox: `*` within a folder, `**` across folders, `{a,b}`, `[0-9]`.

---An image that is built.
---@class tidemill.Build
---@field build string A folder of the project with a Dockerfile, e.g. `images/python-data`.

---What the agent may do with an entry of the manifest.
---@class tidemill.Access
---@field access? "ro"|"rw" `rw` lets the agent change it; `ro` without.

---What `mill.input`, `mill.file`, `mill.dir` and `mill.text` give: content for the manifest. A `mill.file` also serves as `prompt` or `instructions`.
---@class tidemill.Content
---@field text fun(self): string The text of a `mill.file` or `mill.text`, for a prompt function.

---The run a function is called for.
---@class tidemill.Run
---@field id string Its id.
---@field workflow string The workflow's name.
---@field trigger string `drop` or `manual`.
---@field attempt integer 0, then one more for each repair.
---@field input? tidemill.Input The first input; nil when the run has none.
---@field inputs tidemill.Input[] All inputs.
---@field queued_at string When it was queued, as 2026-11-30T06:00:00Z.

---A file a run works on, as it was when the run was queued.
---@class tidemill.Input
---@field name string Its name, made printable.
---@field stem string Its name without the extension.
---@field ext string Its extension in lower case, without the dot; may be empty.
---@field size integer Bytes.
---@field csv fun(self): fun(): (table<string, string>|nil) Iterates over the rows as tables keyed by the header; raises on a broken row.
---@field json fun(self): any, (string|nil) The decoded document; nil and why, when it is none.
---@field text fun(self): (string|nil), (string|nil) The whole text; nil and why, when it is none.
---@field lines fun(self): fun(): (string|nil) Iterates over the lines without their ends.

---A declared output, taken out of the sandbox.
---@class tidemill.Artifact
---@field path string Its path in /workspace.
---@field size integer Bytes.
---@field csv fun(self): fun(): (table<string, string>|nil) Iterates over the rows as tables keyed by the header; raises on a broken row.
---@field json fun(self): any, (string|nil) The decoded document; nil and why, when it is none.
---@field text fun(self): (string|nil), (string|nil) The whole text; nil and why, when it is none.
---@field lines fun(self): fun(): (string|nil) Iterates over the lines without their ends.

---@class tidemill.module
local mill = {}

---Declares the workflow; the script returns it.
---@param options tidemill.Workflow
---@return tidemill.Declared
function mill.workflow(options) end

---Starts a run for every file dropped into the inbox under a matching path.
---@param options tidemill.Drop
---@return tidemill.Trigger
function mill.drop(options) end

---The container image: a tag, or a folder with a Dockerfile.
---@param image string|tidemill.Build
---@return tidemill.Image
function mill.image(image) end

---The file that was dropped. Under a path ending in `/` it is placed there as `input` with its extension.
---@param options? tidemill.Access
---@return tidemill.Content
function mill.input(options) end

---A file of the project: for the manifest, or as `prompt` or `instructions`.
---@param path string
---@param options? tidemill.Access
---@return tidemill.Content
function mill.file(path, options) end

---A folder of the project, for a manifest path ending in `/`.
---@param path string
---@param options? tidemill.Access
---@return tidemill.Content
function mill.dir(path, options) end

---Text as a file.
---@param text string
---@param options? tidemill.Access
---@return tidemill.Content
function mill.text(text, options) end

---A handle on an environment variable. Its value never is in Lua, a prompt, a log or the sandbox. Bound to a host, it goes into `network.secrets`: the sandbox has a placeholder, which becomes the value on its way to that host.
---@param name string
---@param options? tidemill.Bound
---@return tidemill.Secret
function mill.secret(name, options) end

return mill
