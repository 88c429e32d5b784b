/** `gatehouse run`: errors in flags, before anything is started. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { type RunCommandOptions, runServers } from '../../../runtime/tools/run/run.ts'
import { runGatehouse } from '../../helpers/gatehouse.ts'

const nothing: RunCommandOptions = {
  env: [],
  url: [],
  header: [],
  operation: [],
  server: [],
  from: [],
  envFile: [],
  http: false,
  group: 'gatehouse',
  force: false,
  connect: [],
  verbose: false,
  startTimeout: 120,
}

t.test('run: usage errors name the flag, and nothing is started', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1')
  t.teardown(() => taken.close())
  await once(taken, 'listening')
  const address = taken.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const folder = join(t.testdir({}), 'new')
  const cases: readonly (readonly [readonly string[], Partial<RunCommandOptions>, RegExp])[] = [
    [[], {}, /^nothing to run: add a command after --/],
    [[], { url: ['https://a.example'], env: ['A=1'] }, /^-e: requires a command/],
    [[], { url: ['https://a.example'], http: true }, /^--http: requires a command/],
    [['x'], { connect: ['cusror'] }, /^cusror: no such client; did you mean cursor/],
    [['x'], { header: ['A=PATH'] }, /^--header: requires a server with a URL/],
    [
      [],
      { url: ['https://a.example', 'https://b.example'], name: 'x' },
      /^--name: applies only to a single command or URL/,
    ],
    [[], { url: ['ftp://x'] }, /^--url: must be an http or https URL/],
    [[], { server: ['x'] }, /^--server: must be NAME=COMMAND/],
    [[], { server: ['x=a | b'] }, /^--server x: "\|" needs a shell/],
    [[], { openapi: 'x.yaml' }, /^--openapi and --base-url must be used together/],
    [[], { baseUrl: 'https://a.example' }, /^--openapi and --base-url must be used together/],
    [[], { openapi: '/none.yaml', baseUrl: 'https://a.example' }, /^--openapi: the file .* cannot be read/],
    [
      [],
      { openapi: 'package.json', baseUrl: 'https://a.example', save: folder },
      /^--save: cannot save a REST service/,
    ],
    [['x'], { env: ['GATEHOUSE_NOT_SET'] }, /^-e GATEHOUSE_NOT_SET: the variable is not set/],
    [
      [],
      { url: ['https://a.example'], header: ['A=GATEHOUSE_NOT_SET'] },
      /^--header A: the variable is not set/,
    ],
    [[], { from: ['nobody'] }, /^nobody: no such client or file/],
    [['x'], { group: 'Not A Name' }, /^--group: must be a name/],
    [['x'], { port }, /^--port: \d+ is in use by another program/],
    [
      ['http://127.0.0.1:9/mcp'],
      { save: folder },
      /^--save: .* cannot be saved: the URL refers to this machine/,
    ],
    [['http://169.254.169.254/mcp'], {}, /^none of the servers can run/],
  ]
  for (const [words, options, message] of cases) {
    await t.rejects(runServers(words, { ...nothing, ...options }), { code: 'INVALID_CONFIG', message })
  }
})

t.test('run: flags out of range exit with code 2', async (t) => {
  const { code, stderr } = await runGatehouse(['run', '--start-timeout', '0', '--', 'x'])
  t.equal(code, 2)
  t.match(stderr, /1 to 3600/)
})
