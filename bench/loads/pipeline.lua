-- Sends the request of the command line as often in one write as the argument after "--" says.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or ""
dofile(here .. "report.lua")

local batch

function init(args)
  batch = string.rep(wrk.format(), tonumber(args[1]))
end

function request()
  return batch
end
