/**
 * Parses OTLP messages in protobuf into OTLP's JSON form, as far as tests read them. Skips fields that are not in the
 * tables by their wire type. Source: Protocol Buffers, "Encoding"; opentelemetry-proto 1.x (trace.proto, metrics.proto,
 * common.proto).
 */
type Kind = 'string' | 'hex' | 'varint' | 'bool' | 'double' | 'fixed64' | 'doubles'
interface Field {
  readonly name: string
  readonly of: Kind | Shape
  readonly repeated?: true
}
type Shape = Readonly<Record<number, Field>>

const anyValue: Shape = {
  1: { name: 'stringValue', of: 'string' },
  2: { name: 'boolValue', of: 'bool' },
  3: { name: 'intValue', of: 'varint' },
  4: { name: 'doubleValue', of: 'double' },
}
const keyValue: Shape = { 1: { name: 'key', of: 'string' }, 2: { name: 'value', of: anyValue } }
const attributes: Field = { name: 'attributes', of: keyValue, repeated: true }
const resource: Field = { name: 'resource', of: { 1: attributes } }

const span: Shape = {
  1: { name: 'traceId', of: 'hex' },
  2: { name: 'spanId', of: 'hex' },
  3: { name: 'traceState', of: 'string' },
  4: { name: 'parentSpanId', of: 'hex' },
  5: { name: 'name', of: 'string' },
  6: { name: 'kind', of: 'varint' },
  9: attributes,
  13: {
    name: 'links',
    repeated: true,
    of: { 1: { name: 'traceId', of: 'hex' }, 2: { name: 'spanId', of: 'hex' } },
  },
  15: { name: 'status', of: { 2: { name: 'message', of: 'string' }, 3: { name: 'code', of: 'varint' } } },
}
const numberPoint: Shape = {
  4: { name: 'asDouble', of: 'double' },
  6: { name: 'asInt', of: 'fixed64' },
  7: attributes,
}
const histogramPoint: Shape = {
  4: { name: 'count', of: 'fixed64' },
  7: { name: 'explicitBounds', of: 'doubles' },
  9: attributes,
}
const points = (of: Shape): Shape => ({ 1: { name: 'dataPoints', of, repeated: true } })
const metric: Shape = {
  1: { name: 'name', of: 'string' },
  3: { name: 'unit', of: 'string' },
  5: { name: 'gauge', of: points(numberPoint) },
  7: { name: 'sum', of: points(numberPoint) },
  9: { name: 'histogram', of: points(histogramPoint) },
}

/** Message types of the two request bodies, by path. */
const requests: Readonly<Record<string, Shape>> = {
  '/v1/traces': {
    1: {
      name: 'resourceSpans',
      repeated: true,
      of: {
        1: resource,
        2: { name: 'scopeSpans', repeated: true, of: { 2: { name: 'spans', of: span, repeated: true } } },
      },
    },
  },
  '/v1/metrics': {
    1: {
      name: 'resourceMetrics',
      repeated: true,
      of: {
        1: resource,
        2: {
          name: 'scopeMetrics',
          repeated: true,
          of: { 2: { name: 'metrics', of: metric, repeated: true } },
        },
      },
    },
  },
}

export function readOtlp(path: string, body: Buffer): unknown {
  const shape = requests[path]
  if (!shape) throw new Error(`no OTLP request goes to ${path}`)
  return readMessage(body, shape)
}

function readMessage(bytes: Buffer, shape: Shape): Record<string, unknown> {
  const out: Record<string, unknown> = {}
  for (let at = 0; at < bytes.length; ) {
    const tag = readVarint(bytes, at)
    const wire = Number(tag.value & 7n)
    const field = shape[Number(tag.value >> 3n)]
    const length = wire === 2 ? readVarint(bytes, tag.end) : undefined
    const from = length?.end ?? tag.end
    const to = length
      ? from + Number(length.value)
      : wire === 0
        ? readVarint(bytes, from).end
        : from + (wire === 1 ? 8 : 4)
    if (to > bytes.length) throw new Error('the message is cut')
    const raw = bytes.subarray(from, to)
    at = to
    if (!field) continue
    const value = typeof field.of === 'object' ? readMessage(raw, field.of) : readScalar(raw, field.of)
    if (!field.repeated) out[field.name] = value
    else {
      const known = out[field.name]
      out[field.name] = [...(Array.isArray(known) ? known : []), value]
    }
  }
  return out
}

function readScalar(raw: Buffer, kind: Kind): unknown {
  switch (kind) {
    case 'string':
      return raw.toString()
    case 'hex':
      return raw.toString('hex')
    case 'double':
      return raw.readDoubleLE()
    case 'fixed64':
      return Number(raw.readBigInt64LE())
    case 'doubles':
      return Array.from({ length: raw.length / 8 }, (_, i) => raw.readDoubleLE(i * 8))
    case 'bool':
      return readVarint(raw, 0).value !== 0n
    default:
      return Number(BigInt.asIntN(64, readVarint(raw, 0).value))
  }
}

function readVarint(bytes: Buffer, from: number): { value: bigint; end: number } {
  let value = 0n
  for (let i = from; i < bytes.length; i++) {
    const byte = bytes[i] ?? 0
    value |= BigInt(byte & 0x7f) << BigInt(7 * (i - from))
    if (byte < 0x80) return { value, end: i + 1 }
  }
  throw new Error('a number is cut')
}
