/**
 * Changes that real and hostile backends make to single replies and to their capabilities, and messages that they send
 * on their own.
 */
import {
  type BackendOddity,
  listKinds,
  lists,
  type OddExchange,
  type OddList,
  type OddReply,
  streamType,
} from './server.ts'

type Change = (reply: OddReply, exchange: OddExchange & { readonly id: string }) => void

/** A change of one response. */
interface Shape {
  readonly name: string
  readonly change: Change
}

export const text = ({ body }: OddReply): string => body.toString()
const shape = (name: string, change: Change): Shape => ({ name, change })
const body = (name: string, make: (text: string, id: string) => string | Buffer): Shape =>
  shape(name, (reply, { id }) => {
    reply.body = make(text(reply), id)
  })
const status = (code: number, headers: Record<string, string> = {}): Shape =>
  shape(`HTTP ${code}`, (reply) => Object.assign(reply, { status: code, headers: { ...headers }, body: '' }))
const rpcError = (error: string): Shape =>
  body(`error ${error}`, (_, id) => `{"jsonrpc":"2.0","id":${id},"error":${error}}`)
const result = (json: string): Shape =>
  body(`result ${json.slice(0, 20)}`, (_, id) => `{"jsonrpc":"2.0","id":${id},"result":${json}}`)
const typed = (name: string, type: string | undefined): Shape =>
  shape(`content type ${name}`, (reply) => {
    if (type === undefined) delete reply.headers['content-type']
    else reply.headers['content-type'] = type
  })
export const stream = (
  name: string,
  make: (text: string) => string,
  fate: OddReply['fate'] = 'whole',
): Shape =>
  shape(`stream: ${name}`, (reply) =>
    Object.assign(reply, {
      status: 200,
      headers: { ...reply.headers, ...streamType },
      body: make(text(reply)),
      fate,
    }),
  )
export const event = (message: string): string => `data: ${message}\n\n`
const withoutId = (json: string): string => json.replace(/"id":[^,]*,/, '')

/** Changes after which a response is still unambiguous. */
export const harmlessShapes: readonly Shape[] = [
  body('error: null next to the result', (json) => json.replace(/\}$/, ',"error":null}')),
  body('a response in a list', (json) => `[${json}]`),
  body('the id as a text', (json, id) => json.replace(`"id":${id}`, `"id":"${id.replaceAll('"', '')}"`)),
  body('no jsonrpc member', (json) => json.replace('"jsonrpc":"2.0",', '')),
  body('unknown members', (json) => json.replace('{', '{"took":1,"meta":[null],')),
  body('white space around', (json) => `\r\n\t ${json} \r\n\r\n`),
  body('a byte order mark', (json) => `\ufeff${json}`),
  body('escaped characters', (json) => json.replaceAll('"name"', '"n\\u0061me"')),
  typed('none', undefined),
  typed('with a charset', 'Application/JSON; Charset=UTF-8'),
  typed('text/plain', 'text/plain'),
  shape('HTTP 202 with the response', (reply) => Object.assign(reply, { status: 202 })),
  stream('stays open after the response', event, 'open'),
  stream('CRLF', (json) => `event: message\r\ndata: ${json}\r\n\r\n`),
  stream('several lines of data', (json) => `data:{\ndata:${json.slice(1)}\n\n`),
  stream(
    'comments and odd fields',
    (json) => `: x\nretry: 99999999999999999999\nfoo: bar\nid: 1\n${event(json)}`,
  ),
  stream('the response twice', (json) => event(json) + event(json)),
  stream(
    'notifications first',
    (json) =>
      event('{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}') +
      event('{"jsonrpc":"2.0","method":"notifications/unheard","params":null}') +
      event(
        '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"x","progress":1}}',
      ) +
      event(json),
  ),
]

/** Changes that make a response unusable. */
export const fatalShapes: readonly Shape[] = [
  ...[204, 400, 403, 404, 405, 409, 410, 413, 422, 500, 502, 503].map((code) => status(code)),
  status(429, { 'retry-after': '3600' }),
  status(503, { 'retry-after': 'soon' }),
  status(302, { location: 'http://127.0.0.1:9/' }),
  status(401, { 'www-authenticate': 'Bearer error="invalid_token"' }),
  ...[
    '{"code":-32603,"message":"no"}',
    '{"code":-32602,"message":"no"}',
    '{"code":-32000}',
    '{}',
    '"no"',
    '5',
  ].map(rpcError),
  ...['null', '[]', '5', '"x"', 'true', '[[[]]]'].map(result),
  result(`{"deep":${'['.repeat(20_000)}${']'.repeat(20_000)}}`),
  body('another id', (json, id) => json.replace(`"id":${id}`, '"id":987654')),
  body('id null', (json, id) => json.replace(`"id":${id}`, '"id":null')),
  body('no id', withoutId),
  body('neither result nor error', (_, id) => `{"jsonrpc":"2.0","id":${id}}`),
  body('nothing', () => ''),
  body('HTML', () => '<html><body>Please log in</body></html>'),
  body('half of it', (json) => json.slice(0, json.length / 2)),
  body('two messages', (json) => `[${json},${json.replace('result', 'results')}]`),
  body('a list of nothing', () => '[]'),
  body('invalid UTF-8', (json) => Buffer.concat([Buffer.from(json.slice(0, -2)), Buffer.from([0xff, 0xfe])])),
  body('zero bytes', () => Buffer.alloc(64)),
  shape('claims to be compressed', (reply) => {
    reply.headers['content-encoding'] = 'gzip'
  }),
  shape('the connection is cut', (reply) =>
    Object.assign(reply, { body: text(reply).slice(0, 10), fate: 'cut' }),
  ),
  stream('ends without the response', () => event('{"jsonrpc":"2.0","method":"notifications/x"}')),
  stream('ends with nothing', () => ''),
  stream('no JSON', () => event('hello')),
]

/** Changes that withhold the response until the backend's timeout. */
export const silentShapes: readonly Shape[] = [
  shape('nothing is sent', (reply) => Object.assign(reply, { fate: 'silent' })),
  stream('an open stream without the response', () => ': waiting\n\n', 'open'),
  shape('half of the response, and then nothing', (reply) =>
    Object.assign(reply, { body: text(reply).slice(0, 20), fate: 'open' }),
  ),
]

const isList = (kind: OddList, { method }: OddExchange): boolean => method === lists[kind].method

/** Effect of a change on the list: lost or still usable. */
type Fate = 'loses' | 'keeps'

/** A change of the responses to one list. */
export function ofList(kind: OddList, { name, change }: Shape, fate: Fate): BackendOddity {
  return {
    name: `${lists[kind].method}: ${name}`,
    loses: fate === 'loses' ? [kind] : [],
    touches: [kind],
    change(reply, exchange) {
      if (isList(kind, exchange) && exchange.id !== undefined) change(reply, { ...exchange, id: exchange.id })
    },
  }
}

/** A change of the response to `initialize` or `server/discover`. */
export function ofOpening({ name, change }: Shape, fate: Fate): BackendOddity {
  return {
    name: `opening: ${name}`,
    loses: fate === 'loses' ? listKinds : [],
    touches: ['opening', ...listKinds],
    change(reply, exchange) {
      const isOpening =
        exchange.method === 'initialize' ||
        (exchange.method === 'server/discover' && reply.body.includes('supportedVersions'))
      if (isOpening && exchange.id !== undefined) change(reply, { ...exchange, id: exchange.id })
    },
  }
}

/** A change of every response. */
export function ofAll({ name, change }: Shape): BackendOddity {
  return {
    name: `every response: ${name}`,
    loses: [],
    touches: ['opening', 'calls', 'other', ...listKinds],
    change(reply, exchange) {
      const isError = reply.body.includes('"error":')
      if (
        exchange.http === 'POST' &&
        exchange.id !== undefined &&
        reply.fate === 'whole' &&
        reply.status === 200 &&
        !isError
      )
        change(reply, { ...exchange, id: exchange.id })
    },
  }
}

/** A change of the responses to calls of tools, prompts and resources. */
export function ofCalls({ name, change }: Shape): BackendOddity {
  return {
    name: `calls: ${name}`,
    loses: [],
    touches: ['calls'],
    change(reply, exchange) {
      if (/^(tools\/call|prompts\/get|resources\/read)$/.test(exchange.method) && exchange.id !== undefined)
        change(reply, { ...exchange, id: exchange.id })
    },
  }
}

/** A list that reports that it does not exist. */
export function absentList(kind: OddList): BackendOddity {
  return { ...ofList(kind, rpcError('{"code":-32601,"message":"Method not found"}'), 'loses'), isQuiet: true }
}

/** Invalid items among valid ones. */
const junkItems: readonly string[] = [
  ...'null 5 "x" [] [null] {} {"name":5} {"name":null} {"name":""} {"uri":7,"name":"z"} {"__proto__":{"name":"a"}}'.split(
    ' ',
  ),
  '{"name":"odd\\u0000name","uri":"\\u0000","uriTemplate":"{"}',
  `{"name":"${'n'.repeat(100_000)}","uri":"x"}`,
  '{"name":"q","inputSchema":{"type":"object","properties":[]},"uri":"odd:q","uriTemplate":"odd:{q}"}',
  '{"name":"\\ud800","uri":"odd:\\ud800","uriTemplate":"odd:\\ud800"}',
]

function junkIn(kind: OddList, junk: string): BackendOddity {
  const found = body(`item ${junk.slice(0, 24)}`, (json) => json.replace('":[{', `":[${junk},{`))
  return ofList(kind, found, 'keeps')
}

export const junkOddities = listKinds.flatMap((kind) => junkItems.map((junk) => junkIn(kind, junk)))

/** A list whose first page is not followed by the second. */
function ofPages(
  kind: OddList,
  name: string,
  change: (reply: OddReply, isFirst: boolean) => void,
): BackendOddity {
  return {
    name: `${lists[kind].method}: ${name}`,
    loses: [kind],
    keepsFirstPage: true,
    touches: [kind],
    change(reply, exchange) {
      if (isList(kind, exchange)) change(reply, exchange.cursor === undefined)
    },
  }
}

const nextCursor = (json: string) => (reply: OddReply, isFirst: boolean) => {
  if (isFirst) reply.body = text(reply).replace('"nextCursor":"2"', `"nextCursor":${json}`)
}

export const cursorOddities: readonly BackendOddity[] = listKinds.flatMap((kind) => [
  // No cursor: the list ends here.
  { ...ofPages(kind, 'nextCursor null', nextCursor('null')), isQuiet: true },
  ...['""', '0', '5', 'true', '{}', '[]', '1e999'].map((json) =>
    ofPages(kind, `nextCursor ${json}`, nextCursor(json)),
  ),
  ofPages(kind, 'a cursor of 100,000 characters', nextCursor(`"${'c'.repeat(100_000)}"`)),
  ofPages(kind, 'the cursor comes again', (reply, isFirst) => {
    if (!isFirst) reply.body = text(reply).replace(/\]\}/, '],"nextCursor":"2"}')
  }),
  ofPages(kind, 'page 2 is rejected', (reply, isFirst) => {
    if (!isFirst)
      reply.body = text(reply).replace(/"result":.*\}$/, '"error":{"code":-32602,"message":"cursor"}}')
  }),
  ofPages(kind, 'page 2 is HTTP 500', (reply, isFirst) => {
    if (!isFirst) Object.assign(reply, { status: 500, body: '' })
  }),
  ofPages(kind, 'page 2 is no list', (reply, isFirst) => {
    if (!isFirst) reply.body = text(reply).replace(/"result":.*\}$/, '"result":{"tools":5}}')
  }),
])

/** A malformed capability of a backend whose lists work. An undeclared list may fail without a report. */
export const capabilityOddities: readonly BackendOddity[] = [
  ...(['tools', 'prompts', 'resources'] as const).flatMap((kind) =>
    ['true', '[]', 'null', '"yes"', '5', '{"listChanged":"yes"}', undefined].map((json) =>
      ofOpening(
        body(`capability ${kind} ${json ?? 'missing'}`, (message) => {
          const member = new RegExp(`"${kind}":\\{[^}]*\\}`)
          return message.replace(member, json === undefined ? '"other":{}' : `"${kind}":${json}`)
        }),
        'keeps',
      ),
    ),
  ),
  ...['null', '[]', '{}', 'true'].map((json) =>
    ofOpening(
      body(`capabilities ${json}`, (message) =>
        message.replace(/"capabilities":\{.*?\}\}/, `"capabilities":${json}`),
      ),
      'keeps',
    ),
  ),
  ofOpening(
    body('no server info', (json) => json.replace(/,"serverInfo":\{[^}]*\}/, '')),
    'keeps',
  ),
  ofOpening(
    body('server info null', (json) => json.replace(/"serverInfo":\{[^}]*\}/, '"serverInfo":null')),
    'keeps',
  ),
  ofOpening(
    body('instructions 5', (json) => json.replace('"serverInfo"', '"instructions":5,"serverInfo"')),
    'keeps',
  ),
].map((oddity) => ({ ...oddity, isQuiet: true }))
