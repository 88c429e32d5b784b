/** A collector on a loopback port that accepts OTLP over HTTP, in protobuf and in JSON, and records it. */
import { type Loopback, type SeenRequest, startLoopback } from './loopback.ts'
import { readOtlp } from './otlp-protobuf.ts'

export type AttributeValue = string | number | boolean

export interface CollectedSpan {
  readonly name: string
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly traceState: string | undefined
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[]
  readonly attributes: Readonly<Record<string, AttributeValue>>
  /** 0 unset, 1 ok, 2 error. */
  readonly status: number
  readonly resource: Readonly<Record<string, AttributeValue>>
}

export interface CollectedPoint {
  readonly name: string
  readonly unit: string
  readonly attributes: Readonly<Record<string, AttributeValue>>
  readonly value: number
  readonly bounds: readonly number[] | undefined
}

export interface Collector extends Pick<Loopback, 'url' | 'close'> {
  /** All received data as text, including headers. */
  text(): string
  /** Headers of the requests to one signal. */
  headers(signal: 'traces' | 'metrics'): readonly Readonly<Record<string, unknown>>[]
  spans(): CollectedSpan[]
  points(): CollectedPoint[]
  /** Sets the status of the following responses. */
  answerWith(status: number): void
}

interface Attribute {
  readonly key: string
  readonly value: {
    stringValue?: string
    intValue?: number | string
    doubleValue?: number
    boolValue?: boolean
  }
}

function attributesOf(list: readonly Attribute[] = []): Record<string, AttributeValue> {
  return Object.fromEntries(
    list.map(({ key, value }) => {
      const { stringValue, intValue, doubleValue, boolValue } = value
      return [key, stringValue ?? boolValue ?? Number(intValue ?? doubleValue)]
    }),
  )
}

interface Point {
  readonly attributes?: Attribute[]
  readonly asInt?: number | string
  readonly asDouble?: number
  readonly count?: number | string
  readonly explicitBounds?: number[]
}

interface Body {
  readonly resourceSpans?: {
    readonly resource: { attributes?: Attribute[] }
    readonly scopeSpans: {
      readonly spans: (Omit<CollectedSpan, 'attributes' | 'status' | 'resource'> & {
        attributes?: Attribute[]
        status?: { code?: number }
      })[]
    }[]
  }[]
  readonly resourceMetrics?: {
    readonly scopeMetrics: {
      readonly metrics: {
        readonly name: string
        readonly unit?: string
        readonly sum?: { dataPoints: Point[] }
        readonly gauge?: { dataPoints: Point[] }
        readonly histogram?: { dataPoints: Point[] }
      }[]
    }[]
  }[]
}

function read({ path, headers, body, bytes }: SeenRequest): unknown {
  return headers['content-type'] === 'application/x-protobuf' ? readOtlp(path, bytes) : JSON.parse(body)
}

export async function startCollector(): Promise<Collector> {
  let status = 200
  const loopback = await startLoopback(() => ({ status, body: {} }))
  const bodies = (path: string): Body[] =>
    loopback.seen.filter((request) => request.path === path).map((request) => read(request) as Body)
  return {
    url: loopback.url,
    close: () => loopback.close(),
    answerWith: (next) => {
      status = next
    },
    text: () =>
      loopback.seen
        .map((request) => {
          const { path, headers, body } = request
          return `${path}\n${JSON.stringify(headers)}\n${body}\n${JSON.stringify(read(request))}`
        })
        .join('\n'),
    headers: (signal) =>
      loopback.seen.filter(({ path }) => path.endsWith(`/v1/${signal}`)).map(({ headers }) => headers),
    spans: () =>
      bodies('/v1/traces').flatMap(({ resourceSpans = [] }) =>
        resourceSpans.flatMap(({ resource, scopeSpans }) =>
          scopeSpans.flatMap(({ spans }) =>
            spans.map((span) => ({
              ...span,
              attributes: attributesOf(span.attributes),
              status: span.status?.code ?? 0,
              resource: attributesOf(resource.attributes),
            })),
          ),
        ),
      ),
    points: () =>
      bodies('/v1/metrics').flatMap(({ resourceMetrics = [] }) =>
        resourceMetrics.flatMap(({ scopeMetrics }) =>
          scopeMetrics.flatMap(({ metrics }) =>
            metrics.flatMap(
              ({ name, unit = '', sum, gauge, histogram }) =>
                (sum ?? gauge ?? histogram)?.dataPoints.map((point) => ({
                  name,
                  unit,
                  attributes: attributesOf(point.attributes),
                  value: Number(point.asInt ?? point.asDouble ?? point.count ?? 0),
                  bounds: point.explicitBounds,
                })) ?? [],
            ),
          ),
        ),
      ),
  }
}
