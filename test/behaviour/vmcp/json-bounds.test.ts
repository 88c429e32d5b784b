/** JSON that exceeds a reader's limit causes a clear request error, wherever it occurs in a client's message. */
import t from 'tap'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { openSession, post, statelessRequest } from '../../helpers/mcp/wire.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

/** Members without braces, and the end of the error message, which names the limit. */
const BEYOND: Readonly<Record<string, readonly [string, RegExp]>> = {
  'a long name': [`"${'k'.repeat(70_000)}":1`, /a name is longer than 65536 bytes$/],
  'a long name, escaped': [`"${'\\u006b'.repeat(12_000)}":1`, /a name is longer than 65536 bytes$/],
  'a long name in a list': [`"a":[{"${'k'.repeat(70_000)}":1}]`, /a name is longer than 65536 bytes$/],
  'a long number': [`"a":${'7'.repeat(70_000)}`, /a number is longer than 65536 bytes$/],
  'deep nesting': [
    `"a":${'['.repeat(300)}${']'.repeat(300)}`,
    /values are nested more than 256 levels deep$/,
  ],
  'many values': [`"a":[${'0,'.repeat(260_000)}0]`, /a member has more than 250000 values$/],
}
const MANY_MEMBERS = Array.from({ length: 10_001 }, (_, i) => `"m${i}":1`).join()
const TOO_MANY_MEMBERS = /an object has more than 10000 members$/

/** Builds a message with `extra` members at each place. */
const PLACES: Readonly<Record<string, (extra: string) => string>> = {
  'the message': (extra) => `{"jsonrpc":"2.0","id":1,"method":"ping",${extra}}`,
  params: (extra) => request('tools/call', `{"name":"raw_echo",${extra}}`),
  _meta: (extra) => request('tools/call', `{"name":"raw_echo","_meta":{${extra}}}`),
  'the arguments of a tool': (extra) => request('tools/call', `{"name":"raw_echo","arguments":{${extra}}}`),
  'the arguments of a prompt': (extra) => request('prompts/get', `{"name":"raw_p","arguments":{${extra}}}`),
  'client information': (extra) =>
    request('initialize', `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{${extra}}}`),
  capabilities: (extra) =>
    request('initialize', `{"protocolVersion":"2025-11-25","capabilities":{${extra}}}`),
  'a reference': (extra) =>
    request(
      'completion/complete',
      `{"ref":{"type":"ref/prompt",${extra}},"argument":{"name":"a","value":""}}`,
    ),
  'input responses': (extra) => request('tools/call', `{"name":"raw_echo","inputResponses":{${extra}}}`),
  'a notification': (extra) =>
    `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,${extra}}}`,
  'a response': (extra) => `{"jsonrpc":"2.0","id":1,"result":{"action":"accept",${extra}}}`,
}

function request(method: string, params: string): string {
  return `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`
}

t.test('JSON beyond a limit causes a request error, never a server error', async (t) => {
  const backend = await startRawBackend()
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const { headers } = await openSession(vmcp.url)
  const { headers: statelessHeaders } = statelessRequest('tools/call', { name: 'raw_echo' })
  for (const [place, messageWith] of Object.entries(PLACES))
    for (const [era, own] of [
      ['session', headers],
      ['stateless', statelessHeaders],
    ] as const) {
      for (const [shape, [extra, bound]] of Object.entries(BEYOND)) {
        const { status, response } = await post(vmcp.url, messageWith(extra), own)
        t.equal(status, 400, `${shape} in ${place}, ${era}`)
        t.match(response?.error, { code: -32600, message: bound }, `${shape} in ${place}, ${era}`)
      }
      for (const [shape, extra] of [
        ['many members', MANY_MEMBERS],
        ['a member twice', '"a":1,"a":1'],
      ] as const) {
        const { status, response } = await post(vmcp.url, messageWith(extra), own)
        t.ok(status < 500, `${shape} in ${place}, ${era}`)
        t.not(response?.error?.code, -32603, `${shape} in ${place}, ${era}`)
      }
    }
  for (const place of ['params', '_meta'] as const) {
    const { response } = await post(vmcp.url, PLACES[place]?.(MANY_MEMBERS) ?? '', headers)
    t.match(response?.error, { code: -32602, message: TOO_MANY_MEMBERS }, place)
  }
})
