---@meta tidemill

-- Workflows: what starts them, where they run, what they are given and what must come out.

---What `mill.workflow` takes.
---@class tidemill.Workflow
---@field name string A word of `a-z`, `0-9`, `-` and `_`, unique in the project.
---@field description? string One line for lists.
---@field triggers? tidemill.Trigger[] What starts it besides `tidemill run`.
---@field priority? integer Runs of a higher one begin first; 0 without.
---@field concurrency? integer Runs of it at once; as many as the project allows without.
---@field retry? tidemill.Retry What happens when a service fails that a run needs.
---@field image? tidemill.Image Where its commands run: mill.image. Needed unless `sandbox` is another one.
---@field sandbox? "docker"|"local"|"none" `docker` without: a hardened container. `local`: this machine's own programs behind bubblewrap, which holds less. `none`: files, and no commands.
---@field manifest? (table<string, tidemill.Content>|fun(run: tidemill.Run): table<string, tidemill.Content|tidemill.Published>) What is placed in /workspace before the agent starts: path = content, or a function of the run that gives it.
---@field environment? table<string, string> Environment variables of the commands in the sandbox: name = text.
---@field mounts? string[] Places of host folders that `mounts` under [sandbox] in tidemill.toml allows, e.g. `/ref`.
---@field agent tidemill.Agent Who does the work: { model = ... }.
---@field prompt string|tidemill.Content|fun(run: tidemill.Run): string What the agent is asked: text, a mill.file, or a function of the run.
---@field limits? tidemill.Limits What it may use.
---@field network? tidemill.Network What its commands may reach; nothing without.
---@field guardrails? (tidemill.Guardrail|tidemill.InlineGuardrail)[] What is checked before something happens, in order.
---@field outputs? table<string, tidemill.Expectation> What must come out: path in /workspace = expectation.
---@field validate? fun(artifacts: table<string, tidemill.Artifact>, run: tidemill.Run): (tidemill.Finding|tidemill.Finding[]|nil) A check across files: returns nothing, a finding, or a list of findings.
---@field repair? tidemill.Repair What happens when a check fails.
---@field notify? tidemill.Notification|tidemill.Notification[] Who is told what becomes of its runs.
---@field on_success? tidemill.Notification|tidemill.Notification[] Who is told of runs that published.
---@field on_failure? tidemill.Notification|tidemill.Notification[] Who is told of runs that ended in any other way.

---Who does the work.
---@class tidemill.Agent
---@field name? string A name for logs.
---@field model string A model of tidemill.toml, or the provider's own name for one.
---@field instructions? string|tidemill.Content What it is told before the prompt: text or a `mill.file`.
---@field max_turns? integer Model calls at most, repairs included; 30 without.
---@field memory? boolean Whether it keeps notes from run to run. It has no effect yet, and `check` says so.

---What one run may use, repairs included.
---@class tidemill.Limits
---@field cost_usd? number Dollars for models. Needs a known price.
---@field tokens? integer Tokens, read and written together.
---@field wall? string|number Wall time: `10m`, or seconds; 30 minutes without.
---@field command? string|number Wall time of one command; 2 minutes without.
---@field memory? string|integer Memory of the sandbox: `2GiB`, or bytes.
---@field cpus? number Processor cores, of those there are; 2 without.
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

---How often and when a run is tried again that failed by a service: a model, an engine.
---@class tidemill.Retry
---@field attempts? integer Tries in all; 3 without.
---@field backoff? string|number The first wait, doubled each time; `30s` without.
---@field max_backoff? string|number The longest wait; `10m` without.

---What `mill.drop` takes.
---@class tidemill.Drop
---@field glob string Pattern relative to the inbox: `*` within a folder, `**` across folders, `{a,b}`, `[0-9]`; `{case}` captures a part of the path, which becomes `run.params.case`.
---@field settle? string|number How long a file must be quiet; `settle` under [watch] without. 0 is allowed.
---@field min_size? string|integer A file with fewer bytes is waited for; 1 without, so that empty files are.
---@field max_size? string|integer A file with more bytes is left where it is.
---@field ready_when? string Name of the file that says that another is complete: `{name}.done`, `{stem}.ok`.
---@field params_from? string Name of the JSON file whose values become `run.params`: `{stem}.json`. It is waited for, and is no input.
---@field batch? tidemill.Batch Which files make one run together.
---@field existing? "process"|"ignore"|"since_last_run" Files that stand there when watching starts: they are taken (without), left until they change, or left only the first time.
---@field dedupe? "none"|"path"|"content"|"path+content" What makes a file the same as one of a run that succeeded or works: it makes no run then. `none` without.
---@field window? string|number How far back `dedupe` looks; as far as the history goes without.
---@field order? "arrival"|"name"|"mtime" In which order files that are complete at once are taken: `arrival` without.
---@field on_success? tidemill.Afterwards Where a file goes when its runs succeeded: mill.move, mill.keep, mill.delete; `processed/` without.
---@field on_failure? tidemill.Afterwards Where it goes when not, with the reason beside it; `failed/` without.
---@field symlinks? "ignore"|"inside" `inside` follows links to files in the inbox or in a folder of `links_to` under [watch]; none are followed without.

---Which files make one run together, and when all of them are there.
---@class tidemill.Batch
---@field by string What its files have in common: "folder", "stem", or a pattern of names whose captures count: `{customer}-*.csv`.
---@field require? string[] Globs of names; each must have a file.
---@field quiet? string|number How long nothing of it may change; what `settle` says without.
---@field max? integer So many files go at once, without further waiting.
---@field timeout? string|number After so long without a change one that is not complete is given up, and stays where it is.

---What `mill.schedule` takes: one of `cron`, `every` and `at`, and what holds for all three.
---@class tidemill.Schedule
---@field cron? string Minute, hour, day of the month, month, day of the week: `0 6 * * MON`; seconds may stand before.
---@field every? string|number A time from 1s, counted from 1970 in UTC: `6h`, or seconds.
---@field at? string|string[] Local times: `2026-12-24 18:00`.
---@field timezone? string An IANA name such as `Europe/Zurich`; `UTC` without.
---@field missed? "skip"|"latest"|"all" What becomes of instants at which nobody watched: none runs (without), one run for all, or a run each.
---@field catchup_window? string|number Missed instants older than this are skipped; without, any age for `latest` and `1d` for `all`.
---@field overlap? "skip"|"queue"|"latest"|"allow" What becomes of an instant while the run before works: it is skipped (without), it waits its turn, only the latest of them waits, or it runs beside.
---@field start_deadline? string|number A run that has not begun by then does not begin.
---@field jitter? string|number Starts are spread over this time, each instant always at the same place in it.

---What `mill.webhook` takes.
---@class tidemill.Webhook
---@field path string What stands behind `/hooks/`, unique in the project: `refunds`, `shop/orders`.
---@field secret tidemill.Secret|tidemill.Secret[] A mill.secret that requests are signed with; two of them while it is changed.
---@field scheme? "standard"|"github"|"stripe"|"slack"|tidemill.Hmac How requests are signed: `standard` (Standard Webhooks) without.
---@field max_body? string|integer The largest body that is taken: `1MB` without, `100MB` at most.
---@field rate? number Requests a second that are taken on average, 50 without; more are told to wait.

---A signature of a sender's own: HMAC-SHA256 of the body, in hexadecimal or base64.
---@class tidemill.Hmac
---@field hmac string Name of the header with the signature, e.g. `X-Signature`.

---What `mill.notify` takes.
---@class tidemill.Notify
---@field url string|tidemill.Secret An `https://` address, or a mill.secret where it is a key itself.
---@field events? string[] Moments: `run.queued`, `run.started`, `run.succeeded`, `run.rejected`, `run.denied`, `run.exhausted`, `run.failed`, `run.cancelled`. In `notify` all six ends without; `on_success` and `on_failure` say it themselves.
---@field secret? tidemill.Secret Signs the messages as Standard Webhooks are signed.

---How an image is made: from a folder (`build`), or from another image (`from`).
---@class tidemill.ImageOptions
---@field build? string A folder of the project with a Dockerfile, e.g. `images/python-data`.
---@field from? string A tag or digest, e.g. `python:3.12-slim`, for `packages`, `platform` and `pull`.
---@field target? string The stage of the Dockerfile to build; the last one without.
---@field args? table<string, string> Build arguments. They are kept in the image's history.
---@field secrets? table<string, tidemill.Secret> Build secrets: id = mill.secret "NAME", for `RUN --mount=type=secret,id=...`.
---@field packages? tidemill.Packages What is installed on top.
---@field platform? string For which platform, e.g. `linux/amd64`; the engine's own without.
---@field pull? "missing"|"never"|"always" When a registry is asked for it, or for its base; `missing` without.

---What is installed on top of an image; `apt` comes first.
---@class tidemill.Packages
---@field apt? string[] Debian packages: `jq`, or `jq=1.6-2.1`.
---@field python? string[] Python packages, for pip: `pandas==2.2.3`, `polars>=1,<2`.

---What the agent may do with an entry of the manifest.
---@class tidemill.Rights
---@field access? "ro"|"rw" `rw` lets the agent change it; `ro` without.
---@field mode? string|integer Permission bits of its files in octal, as `chmod` takes them: `"0755"`. Write bits of a `ro` entry do nothing. Without, programs of the project stay programs.

---What `mill.dir` takes besides the folder. A file `.tidemillignore` in the folder counts before `ignore`.
---@class tidemill.Dir
---@field ignore? string[] What is left out, as lines of a `.gitignore`: `*.tmp`, `cache/`, `!keep.tmp`.
---@field access? "ro"|"rw" `rw` lets the agent change it; `ro` without.
---@field mode? string|integer Permission bits of its files in octal, as `chmod` takes them: `"0755"`. Write bits of a `ro` entry do nothing. Without, programs of the project stay programs.

---What `mill.url` takes besides the address.
---@class tidemill.Url
---@field sha256 string Hash of the content, 64 hexadecimal digits: `curl -sSL URL | sha256sum` prints it.
---@field max? string|integer The largest size that is fetched: `1GiB` without.
---@field access? "ro"|"rw" `rw` lets the agent change it; `ro` without.
---@field mode? string|integer Permission bits of its files in octal, as `chmod` takes them: `"0755"`. Write bits of a `ro` entry do nothing. Without, programs of the project stay programs.

---What `mill.git` takes besides the repository.
---@class tidemill.Git
---@field ref string A branch, a tag or a full commit hash.
---@field path? string The file or folder of it that is wanted; all of it without.
---@field ignore? string[] What is left out, as lines of a `.gitignore`: `*.tmp`, `cache/`, `!keep.tmp`.
---@field history? boolean Whether `.git` comes along; best with `access = "rw"`.
---@field submodules? boolean Whether its submodules come along.
---@field access? "ro"|"rw" `rw` lets the agent change it; `ro` without.
---@field mode? string|integer Permission bits of its files in octal, as `chmod` takes them: `"0755"`. Write bits of a `ro` entry do nothing. Without, programs of the project stay programs.

---What `mill.artifacts` takes besides the workflow.
---@class tidemill.Artifacts
---@field path? string The one that is wanted, as that workflow's `outputs` name it; all of them without.
---@field which? string `latest` (the last run that succeeded), or the id of a run.
---@field optional? boolean Whether nothing is placed, instead of the run failing, while no run has succeeded yet.
---@field access? "ro"|"rw" `rw` lets the agent change it; `ro` without.
---@field mode? string|integer Permission bits of its files in octal, as `chmod` takes them: `"0755"`. Write bits of a `ro` entry do nothing. Without, programs of the project stay programs.

---What `mill.artifacts` takes in a function that is a `manifest`: which artifacts of all runs that succeeded.
---@class tidemill.Wanted
---@field workflow string The workflow that published them.
---@field since? (tidemill.Time|string) Published then or later: a time such as `run.previous_scheduled_at`, or a duration such as `7d` before the instant the run is for. All without.
---@field until? (tidemill.Time|string) Published before then; up to now without.
---@field name? string Only of this name: `anomalies.csv`, or `output/anomalies.csv`.

---What `mill.input`, `mill.file`, `mill.dir`, `mill.text`, `mill.bytes`, `mill.url`, `mill.git` and `mill.artifacts` give: content for the manifest. A `mill.file` also serves as `prompt` or `instructions`.
---@class tidemill.Content
---@field text fun(self): string The text of a `mill.file` or `mill.text`, for a prompt function.

---The run a function is called for.
---@class tidemill.Run
---@field id string Its id.
---@field workflow string The workflow's name.
---@field trigger string `drop`, `schedule`, `webhook` or `manual`.
---@field params table<string, any> What the trigger knows besides the files, e.g. parts of a path.
---@field attempt integer 0, then one more for each repair.
---@field input? tidemill.Input The first input; nil when the run has none. Of a batch, `run.input["meta.json"]` is the file of that name, nil when there is none.
---@field inputs tidemill.Input[] All inputs, in the order of their paths.
---@field queued_at string When it was queued, as 2026-11-30T06:00:00Z.
---@field scheduled_at? tidemill.Time The instant it is for; nil when no schedule started it.
---@field previous_scheduled_at? tidemill.Time The instant of the run before it by the same schedule; nil for the first.
---@field missed_count integer Instants between the two that made no run.

---An instant. As text it is UTC, as 2026-11-30T06:00:00Z; times can be compared.
---@class tidemill.Time
---@field date fun(self): string Its date in the time zone of the schedule, as 2026-11-30.
---@field clock fun(self): string Its time of the day in the time zone of the schedule, as 06:00:00.

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

---An artifact that another run published: a value for the manifest, which may be read as well. Its bytes are those that were published, or it is refused.
---@class tidemill.Published
---@field run_id string The run that published it.
---@field name string As it stands in that run's folder of the outbox, e.g. `anomalies.csv`.
---@field path string As its workflow declares it, e.g. `output/anomalies.csv`.
---@field size integer Bytes.
---@field published_at tidemill.Time When it was published.
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

---Starts a run for every file, or batch of files, dropped into the inbox under a matching path.
---@param options tidemill.Drop
---@return tidemill.Trigger
function mill.drop(options) end

---For `on_success` and `on_failure` of a drop: into this folder of the project, which may name captures of the glob: `archive/{case}`.
---@param folder string
---@return tidemill.Afterwards
function mill.move(folder) end

---For `on_success` and `on_failure` of a drop: the file stays in the inbox, and runs again when it has changed.
---@return tidemill.Afterwards
function mill.keep() end

---For `on_success` and `on_failure` of a drop: the file is removed.
---@return tidemill.Afterwards
function mill.delete() end

---Starts a run at every instant of a cron pattern, an interval or a list of times.
---@param options tidemill.Schedule
---@return tidemill.Trigger
function mill.schedule(options) end

---Starts a run for every signed request to a path.
---@param options tidemill.Webhook
---@return tidemill.Trigger
function mill.webhook(options) end

---Tells a server what becomes of runs, for `notify`, `on_success` and `on_failure`.
---@param options tidemill.Notify
---@return tidemill.Notification
function mill.notify(options) end

---The container image: a tag or digest, or how it is made.
---@param image string|tidemill.ImageOptions
---@return tidemill.Image
function mill.image(image) end

---The file that was dropped. Under a path ending in `/` it is placed there as `input` with its extension.
---@param options? tidemill.Rights
---@return tidemill.Content
function mill.input(options) end

---A file of the project: for the manifest, or as `prompt` or `instructions`.
---@param path string
---@param options? tidemill.Rights
---@return tidemill.Content
function mill.file(path, options) end

---A folder of the project, for a manifest path ending in `/`.
---@param path string
---@param options? tidemill.Dir
---@return tidemill.Content
function mill.dir(path, options) end

---Text as a file.
---@param text string
---@param options? tidemill.Rights
---@return tidemill.Content
function mill.text(text, options) end

---Bytes as a file; they need not be text.
---@param bytes string
---@param options? tidemill.Rights
---@return tidemill.Content
function mill.bytes(bytes, options) end

---A file from the network, fetched by the host when a run starts and kept by its hash.
---@param url string
---@param options tidemill.Url
---@return tidemill.Content
function mill.url(url, options) end

---A repository at one commit, cloned on the host: `https://`, `ssh://` or `file:///`, or a folder of the project.
---@param repository string
---@param options tidemill.Git
---@return tidemill.Content
function mill.git(repository, options) end

---What the last run of a workflow published, checked against the hashes in its log. With a table, in a manifest function: the list of all artifacts that fit, oldest first, to place or to read.
---@param workflow string|tidemill.Wanted
---@param options? tidemill.Artifacts
---@return tidemill.Content|tidemill.Published[]
function mill.artifacts(workflow, options) end

---A handle on an environment variable. Its value never is in Lua, a prompt, a log or the sandbox. Bound to a host, it goes into `network.secrets`: the sandbox has a placeholder, which becomes the value on its way to that host.
---@param name string
---@param options? tidemill.Bound
---@return tidemill.Secret
function mill.secret(name, options) end

return mill
