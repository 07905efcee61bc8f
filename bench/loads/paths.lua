-- Walks paths that grow by one segment a step, a hundred steps, then starts again: /paths/0/,
-- /paths/0/1/, up to about 300 bytes. A router that splits paths allocates more with every step.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or ""
dofile(here .. "report.lua")

local requests, step = {}, 0

function init()
  local path = "/paths/"
  for segment = 0, 99 do
    path = path .. segment .. "/"
    requests[segment] = wrk.format("GET", path)
  end
end

function request()
  local this = requests[step]
  step = (step + 1) % 100
  return this
end
