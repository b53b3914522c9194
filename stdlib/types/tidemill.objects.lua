---@meta tidemill.objects

-- Objects that scripts hand on and cannot take apart.

---What a script returns: a declared workflow.
---@class tidemill.Declared

---What starts a workflow.
---@class tidemill.Trigger

---Who is told what becomes of runs.
---@class tidemill.Notification

---Where a dropped file goes when its runs have ended.
---@class tidemill.Afterwards

---A container image.
---@class tidemill.Image

---A handle on a secret; its value never is in Lua.
---@class tidemill.Secret

---What an output must be.
---@class tidemill.Expectation

---Something a check found wrong.
---@class tidemill.Finding

---A check before something happens.
---@class tidemill.Guardrail

---What a guardrail says.
---@class tidemill.Verdict

---One answer of a scripted model.
---@class tidemill.Step

---A scripted model.
---@class tidemill.Part

---One item of a conversation, as a scripted model's function sees it.
---@class tidemill.Item
