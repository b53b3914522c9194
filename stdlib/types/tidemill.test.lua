---@meta tidemill.test

-- Scripted models: what a model would answer, turn by turn, so that a workflow runs with no key and no network.

---@class tidemill.test.module
local test = {}

---A model that answers with these steps, one a turn. Steps in a list of their own are one turn.
---@param steps (tidemill.Step|tidemill.Step[])[]
---@return tidemill.Part
function test.script(steps) end

---Asks for the tool `shell` with this command.
---@param command string
---@return tidemill.Step
function test.shell(command) end

---Asks for a tool. Arguments as text are sent as they are, to show what a broken model does.
---@param tool string
---@param arguments? table|string
---@return tidemill.Step
function test.call(tool, arguments) end

---Answers with text: the end, unless the checks fail.
---@param text string
---@return tidemill.Step
function test.say(text) end

---The text of a file of the project.
---@param path string
---@return string
function test.read(path) end

return test
