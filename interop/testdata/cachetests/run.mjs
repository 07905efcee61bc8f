// What the tests of http-tests/cache-tests are run with, in the folder of their snapshot:
//
//   node run.mjs origin          serves what a cache stands in front of, and prints its port
//   node run.mjs BASE TESTS...   runs tests, all if none is named, through the cache at the URL BASE
//
// The latter prints for each test that has run its name, its kind and whether it has passed; else why not.
import http from 'http'

if (process.argv[2] === 'origin') {
  const handlers = {}
  for (const name of ['config', 'state', 'test']) {
    handlers[name] = (await import(`./test-engine/server/handle-${name}.mjs`)).default
  }
  const server = http.createServer((request, response) => {
    const [, name, ...rest] = new URL(request.url, 'http://localhost').pathname.split('/')
    if (handlers[name]) return handlers[name](rest, request, response)
    response.statusCode = 404
    response.end()
  })
  console.log = console.error // what the handlers say
  server.listen(0, '127.0.0.1', () => process.stdout.write(`${server.address().port}\n`))
} else {
  const { default: suites } = await import('./tests/index.mjs')
  const { runTests, getResults } = await import('./test-engine/client/runner.mjs')
  const { determineTestResult, resultTypes } = await import('./test-engine/lib/results.mjs')
  const [base, ...wanted] = process.argv.slice(2)
  const interim = await import('undici').then(() => true, () => false) // what interim responses are seen with
  const run = suites.map(suite => ({
    ...suite,
    tests: suite.tests.filter(test => (wanted.length === 0 || wanted.includes(test.id)) &&
      (interim || !test.requests.some(request => 'expected_interim_responses' in request)))
  }))
  await runTests(run, false, base, 130)
  const results = getResults()
  for (const suite of suites) {
    for (const test of suite.tests) {
      const result = results[test.id]
      if (result === undefined) continue
      const [name] = Object.entries(resultTypes).find(entry => entry[1] === determineTestResult(suites, test.id, results, false))
      console.log([test.id, test.kind || 'required', result === true, name, result === true ? '-' : String(result[1])].join('\t'))
    }
  }
}
