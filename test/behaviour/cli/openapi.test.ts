/** `gatehouse openapi` as a command: tools, skipped operations, advice, requests, exit codes. */
import { join, resolve } from 'node:path'
import t from 'tap'
import { program, runGatehouse } from '../../helpers/gatehouse.ts'
import { spawnSync } from 'node:child_process'

const orders = resolve('test/fixtures/openapi/orders-3.0.yaml')
const every = ['--include', 'method=GET,method=POST,method=PUT,method=DELETE']

t.test('openapi: shows the tools, and names the operations that it does not select', async (t) => {
  const { code, stdout } = await runGatehouse(['openapi', orders])
  t.equal(code, 0)
  t.match(stdout, /^Orders \(OpenAPI 3\.0\.3\): 6 operations, 2 tools, about \d+ tokens in a list\n/)
  t.match(stdout, /orders_list +GET \/orders +\[status\] \[created\] \[cursor\] \[X-Tenant\]\n/)
  t.match(stdout, /get_orders_by_id +GET \/orders\/\{id\} +id\n/)
  t.match(stdout, '3 operations with methods other than GET and HEAD; select them with --include')
  t.match(stdout, '1 operation marked as deprecated; select them with --include-deprecated')
})

t.test('openapi: lists skipped operations with reason and fix, and exits with 1', async (t) => {
  const { code, stdout } = await runGatehouse(['openapi', orders, ...every, '--include-deprecated'])
  t.equal(code, 1)
  t.match(
    stdout,
    '  PUT /orders/{id}/invoice: the media type of the request body is multipart/form-data (body_media_type). Exclude the operation.',
  )
  t.match(stdout, /orders_invoice +GET/)
  const without = await runGatehouse(['openapi', orders, ...every, '--exclude', 'path=/orders/*/invoice'])
  t.equal(without.code, 0)
  t.notMatch(without.stdout, 'Skipped')
  t.match(without.stdout, '2 operations excluded')
  const unused = await runGatehouse(['openapi', orders, '--include', 'method=GET', '--include', 'tag=none'])
  t.match(unused.stdout, '\nNotes:\n  include filter 2 matches no operation (unused_filter)\n')
})

t.test('openapi: prints the conversion as JSON, and saves tokens without output schemas', async (t) => {
  const jsonOf = async (...args: string[]) =>
    JSON.parse((await runGatehouse(['openapi', orders, '--json', ...args])).stdout)
  const all = await jsonOf()
  t.match(all, {
    title: 'Orders',
    operations: 6,
    tools: [{ name: 'orders_list', request: { method: 'GET' } }, {}],
  })
  t.match(all.tools[0].outputSchema, { properties: { next: {} } })
  const short = await jsonOf('--no-output-schemas')
  t.equal(short.tools[0].outputSchema, undefined)
  t.ok(short.tokens < all.tokens)
  const data = await jsonOf('--field', 'data.status')
  t.same(Object.keys(data.tools[0].outputSchema.properties.data.items.properties), ['status'])
})

t.test('openapi: reads standard input and gives advice', async (t) => {
  const paths = Object.fromEntries(
    Array.from({ length: 41 }, (_, i) => [`/p${i}`, { get: { operationId: `o${i}` } }]),
  )
  const input = JSON.stringify({ openapi: '3.1.0', info: { title: 'A\u001b[31m' }, paths })
  const { status, stdout } = spawnSync(process.execPath, [program, 'openapi', '-'], {
    input,
    encoding: 'utf8',
  })
  t.equal(status, 0)
  t.match(stdout, '41 tools are more than models handle well: select fewer, or use tool search')
  t.match(stdout, 'Add a description to these operations: o0, o1, o2 and 38 more')
  t.match(stdout, 'Add a summary, which becomes the title, to these operations: o0, o1, o2 and 38 more')
  t.notMatch(stdout, '\u001b', 'text of the document cannot control the terminal')
})

t.test('openapi: prints the request of a call, and rejects unsafe arguments', async (t) => {
  const request = (...args: string[]) => runGatehouse(['openapi', orders, ...every, '--request', ...args])
  const sent = await request(
    'orders_list',
    '--args',
    '{"status": ["open"], "created": {"from": "x"}, "X-Tenant": "a"}',
  )
  t.match(sent, {
    code: 0,
    stdout: 'GET /orders?status%5B%5D=open&created%5Bfrom%5D=x\naccept: application/json\nX-Tenant: a\n',
  })
  const created = await request('orders_create', '--args', '{"items": [{"sku": "a"}]}', '--json')
  t.match(JSON.parse(created.stdout), { method: 'POST', body: '{"items":[{"sku":"a"}]}' })
  const unsafe = await request('get_orders_by_id', '--args', '{"id": "../users"}')
  t.match(unsafe, { code: 2, stderr: /--args: invalid argument "id": must not contain \/ or/ })
  t.match(await request('nope'), { code: 2, stderr: /--request: the document produces no tool named "nope"/ })
})

t.test('openapi: a rejected document and invalid usage have their own exit codes', async (t) => {
  const folder = t.testdir({ 'two.json': '{"swagger": "2.0"}' })
  const two = join(folder, 'two.json')
  t.match(await runGatehouse(['openapi', two]), {
    code: 1,
    stderr: /rejected \(version\): .*got Swagger 2\.0/,
  })
  t.match(JSON.parse((await runGatehouse(['openapi', two, '--json'])).stdout), {
    rule: 'version',
    error: /Swagger/,
  })
  t.match(await runGatehouse(['openapi', join(folder, 'none')]), {
    code: 2,
    stderr: /cannot be read: file not found/,
  })
  t.match(await runGatehouse(['openapi', orders, '--include', 'tags=a']), {
    code: 2,
    stderr: /one of the keys operationId, tag/,
  })
  t.match(await runGatehouse(['openapi', orders, '--args', '{}']), {
    code: 2,
    stderr: /no effect without --request/,
  })
  t.match(
    await runGatehouse([
      'openapi',
      orders,
      '--request',
      'orders_list',
      '--field',
      'a',
      '--no-output-schemas',
    ]),
    {
      code: 2,
      stderr: /--field: has no effect with --request\n--no-output-schemas: has no effect with --request/,
    },
  )
})
