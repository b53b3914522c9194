---@meta tidemill.expect

-- Expectations: what a declared output must be. Everything found wrong goes back to the agent.

---What `expect.csv` takes.
---@class tidemill.Csv
---@field columns? string[] Columns that must be there; others may be.
---@field types? table<string, "string"|"integer"|"number"|"boolean"|"date"|"datetime"> What a column's values are; empty cells are left to `not_null`.
---@field min_rows? integer Rows at least, the header not counted.
---@field max_rows? integer Rows at most.
---@field unique? string[] Columns whose values together occur once.
---@field not_null? string[] Columns without empty cells.
---@field ranges? table<string, tidemill.Range> Numbers of a column between these, both included.
---@field enum? table<string, string[]> The only values of a column.
---@field pattern? table<string, string> Patterns (regular expressions) that a column's values match as a whole.

---Bounds of a number, both included: { min = 0, max = 1 } or { 0, 1 }.
---@class tidemill.Range
---@field min? number Least.
---@field max? number Most.

---What `expect.json` takes.
---@class tidemill.Json
---@field schema? table|string JSON Schema, as a table or as the path of a file of the project.

---What `expect.image` takes.
---@class tidemill.Picture
---@field format? "png"|"jpeg"|"gif"|"webp"|"bmp" The format; any of them without.
---@field min_width? integer Pixels at least.
---@field max_width? integer Pixels at most.
---@field min_height? integer Pixels at least.
---@field max_height? integer Pixels at most.

---What `expect.text` takes.
---@class tidemill.Text
---@field ascii? boolean Whether only ASCII is allowed.
---@field min_words? integer Words at least.
---@field max_words? integer Words at most.
---@field contains? string|string[] What must occur.
---@field pattern? string A pattern (regular expression) that must occur.

---What `expect.file` takes.
---@class tidemill.File
---@field min_size? string|integer Bytes at least; 1 without.
---@field max_size? string|integer Bytes at most.
---@field magic? string What its first bytes must show: a MIME type (`application/pdf`) or an extension (`pdf`).

---@class tidemill.expect.module
local expect = {}

---A table with a header row.
---@param options? tidemill.Csv
---@return tidemill.Expectation
function expect.csv(options) end

---A JSON document.
---@param options? tidemill.Json
---@return tidemill.Expectation
function expect.json(options) end

---A picture that really decodes and is not blank.
---@param options? tidemill.Picture
---@return tidemill.Expectation
function expect.image(options) end

---Text in UTF-8.
---@param options? tidemill.Text
---@return tidemill.Expectation
function expect.text(options) end

---Any file.
---@param options? tidemill.File
---@return tidemill.Expectation
function expect.file(options) end

---What `validate` returns when something is wrong; further arguments are formatted in as by `string.format`. A list of findings may be returned as well.
---@param message string
---@param ... any
---@return tidemill.Finding
function expect.fail(message, ...) end

return expect
