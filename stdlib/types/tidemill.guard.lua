---@meta tidemill.guard

-- Guardrails: what is checked before something happens, and what such a check says.

---What `guard.input_size` takes.
---@class tidemill.InputSize
---@field max string|integer The largest size allowed: `20MB`, or bytes.

---What `guard.commands` takes: patterns such as `curl *`.
---@class tidemill.Commands
---@field deny? string[] Commands that are refused.
---@field ask? string[] Commands a person must agree to.
---@field allow? string[] Commands that may run; without it, everything not denied.

---A guardrail of your own, written into `guardrails`.
---@class tidemill.InlineGuardrail
---@field on "input"|"prompt"|"tool_call"|"tool_output"|"answer" Before what it is asked.
---@field name? string Its name in logs.
---@field check fun(subject: table, run: tidemill.Run): (tidemill.Verdict|nil) Gets the subject (`input`: name, size; `prompt` and `answer`: text; `tool_call`: tool, arguments; `tool_output`: tool, output) and the run; gives a verdict, or nothing to pass.

---@class tidemill.guard.module
local guard = {}

---Refuses dropped files that are too large.
---@param options tidemill.InputSize
---@return tidemill.Guardrail
function guard.input_size(options) end

---Judges every simple command of every shell call, also in pipes, lists, substitutions and under `sh -c`. The strictest rule that matches counts; with `allow`, what no rule matches is denied.
---@param options tidemill.Commands
---@return tidemill.Guardrail
function guard.commands(options) end

---Go on. Returning nothing says the same.
---@return tidemill.Verdict
function guard.pass() end

---Stop, and why; further arguments are formatted in as by `string.format`.
---@param reason string
---@param ... any
---@return tidemill.Verdict
function guard.deny(reason, ...) end

---A person must say yes. Denies until approvals exist.
---@param reason string
---@param ... any
---@return tidemill.Verdict
function guard.ask(reason, ...) end

---Go on with this text instead: the prompt, the tool's arguments (JSON), its output, or the answer.
---@param text string
---@param reason? string
---@return tidemill.Verdict
function guard.replace(text, reason) end

return guard
