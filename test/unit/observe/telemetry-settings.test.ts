/** The effect of `telemetry` in a configuration, and its errors. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { makeTelemetry } from '../../../runtime/observe/index.ts'
import { telemetrySettings } from '../../../runtime/observe/telemetry/settings.ts'
import type { Telemetry } from '../../../schemas/index.ts'

const defaults: Telemetry = {
  enablePrometheusMetricsPath: false,
  insecure: false,
  metricsEnabled: false,
  samplingRate: '0.05',
  tracingEnabled: false,
  useLegacyAttributes: true,
}
const from = { serverName: 'srv', version: '1.2.3', env: { TOKEN: 'abc', REGION: 'eu', DB_PASSWORD: 'x' } }

function settings(config: Partial<Telemetry>) {
  return telemetrySettings({ ...defaults, tracingEnabled: true, ...config }, from)
}

function failure(config: Partial<Telemetry>): string {
  try {
    settings(config)
  } catch (error) {
    return error instanceof Error ? error.message : ''
  }
  return 'nothing was refused'
}

t.test('telemetry settings: without configuration, nothing is enabled or loaded', async (t) => {
  t.equal(telemetrySettings(undefined, from), undefined)
  t.equal(telemetrySettings(defaults, from), undefined)
  const telemetry = await makeTelemetry(defaults, { serverName: 's', version: '1' })
  t.equal(telemetry.enabled, false)
  t.equal(telemetry.prometheus, undefined)
  t.same(telemetry.tracer.carrier(), {})
  t.equal(
    telemetry.tracer.internal('optimizer.FindTool', undefined, (span) => span.recording),
    false,
  )
})

t.test('telemetry settings: the endpoint is the base of both signals', async (t) => {
  for (const [endpoint, insecure, base] of [
    ['https://otel.example:4318', false, 'https://otel.example:4318'],
    ['https://otel.example/tenant/a/', false, 'https://otel.example/tenant/a'],
    ['otel.example:4318', false, 'https://otel.example:4318'],
    ['otel.example:4318', true, 'http://otel.example:4318'],
    ['http://otel.example', true, 'http://otel.example'],
    ['http://127.0.0.1:4318', false, 'http://127.0.0.1:4318'],
  ] as const) {
    const found = settings({ endpoint, insecure })
    t.match(
      found,
      { collector: { tracesUrl: `${base}/v1/traces`, metricsUrl: `${base}/v1/metrics` } },
      endpoint,
    )
  }
})

t.test('telemetry settings: an invalid endpoint is rejected', async (t) => {
  t.match(
    failure({ endpoint: 'http://otel.example' }),
    /^telemetry\.endpoint: http requires telemetry\.insecure to be true/,
  )
  for (const endpoint of ['https://u:p@h', 'https://h/?a=b', 'https://h#x', 'https://', 'a b'])
    t.match(failure({ endpoint }), /^telemetry\.endpoint: must be host:port or an http\(s\) URL/, endpoint)
  t.match(
    failure({ endpoint: 'https://h', tracingEnabled: false }),
    'telemetry.endpoint: set tracingEnabled or metricsEnabled, or omit the endpoint',
  )
})

t.test(
  'telemetry settings: the encoding is protobuf, unless the standard variables select JSON',
  async (t) => {
    const read = (env: Record<string, string>) =>
      telemetrySettings({ ...defaults, tracingEnabled: true, endpoint: 'https://h' }, { ...from, env })
        ?.collector
    const common = 'OTEL_EXPORTER_OTLP_PROTOCOL'
    const traces = 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'
    const metrics = 'OTEL_EXPORTER_OTLP_METRICS_PROTOCOL'
    const protobuf = 'http/protobuf'
    const json = 'http/json'
    for (const [env, tracesProtocol, metricsProtocol] of [
      [{}, protobuf, protobuf],
      [{ [common]: '' }, protobuf, protobuf],
      [{ [common]: json }, json, json],
      [{ [common]: json, [traces]: protobuf }, protobuf, json],
      [{ [metrics]: json }, protobuf, json],
    ] as const)
      t.match(read(env), { tracesProtocol, metricsProtocol }, JSON.stringify(env))
    t.throws(() => read({ [common]: 'grpc' }), {
      message: /^OTEL_EXPORTER_OTLP_PROTOCOL: grpc is not supported: .*4318/,
    })
    t.throws(() => read({ [traces]: 'http' }), { message: `${traces}: must be http/protobuf or http/json` })
    t.doesNotThrow(
      () => telemetrySettings(defaults, { ...from, env: { [common]: 'grpc' } }),
      'nothing is sent',
    )
  },
)

t.test('telemetry settings: header values come from the named variables', async (t) => {
  const endpoint = 'https://h'
  t.same(
    settings({
      endpoint,
      headers: { authorization: 'Bearer ${TOKEN}', 'x-team': 'a$b', 'x-raw': '$${TOKEN} ${1} $$$${TOKEN}' },
    })?.collector?.headers,
    {
      authorization: 'Bearer abc',
      'x-team': 'a$b',
      'x-raw': '${TOKEN} ${1} $$${TOKEN}',
    },
  )
  t.equal(
    failure({ endpoint, headers: { a: '${MISSING}', 'b c': 'x', d: 'x\ny' } }),
    [
      'telemetry.headers.a: the variable MISSING is not set',
      'telemetry.headers.b c: "b c" is not a valid header name: use letters, digits and -_.~!#$%&\'*+^`|, at most 255',
      'telemetry.headers.d: must not contain control characters or characters beyond Latin-1',
    ].join('\n'),
    'all errors at once, without values',
  )
})

t.test('telemetry settings: the trust anchors must be readable and PEM', async (t) => {
  const dir = t.testdir({ 'ca.crt': '-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n' })
  const endpoint = 'https://h'
  t.match(settings({ endpoint, caCertPath: join(dir, 'ca.crt') })?.collector?.ca, /BEGIN CERTIFICATE/)
  t.equal(failure({ endpoint, caCertPath: join(dir, 'no') }), 'telemetry.caCertPath: the file cannot be read')
  writeFileSync(join(dir, 'key'), 'nothing')
  t.equal(
    failure({ endpoint, caCertPath: join(dir, 'key') }),
    'telemetry.caCertPath: the file contains no PEM certificate',
  )
})

t.test('telemetry settings: the sampling rate is a fraction', async (t) => {
  for (const samplingRate of ['0', '0.05', '1.0', '1'])
    t.equal(settings({ endpoint: 'https://h', samplingRate })?.samplingRatio, Number(samplingRate))
  for (const samplingRate of ['', '-0.1', '1.1', 'all', 'NaN'])
    t.equal(
      failure({ samplingRate }),
      'telemetry.samplingRate: must be a number from 0.0 to 1.0',
      samplingRate,
    )
})

t.test('telemetry settings: the resource contains service name, version and attributes', async (t) => {
  const endpoint = 'https://h'
  const given = { team: 'a', 'service.name': 'no', 'service.instance.id': 'one' }
  t.same(settings({ endpoint, customAttributes: given })?.resource, {
    team: 'a',
    'service.instance.id': 'one',
    'service.name': 'srv',
    'service.version': '1.2.3',
  })
  t.match(settings({ endpoint, serviceName: 'mine', serviceVersion: '9' })?.resource, {
    'service.name': 'mine',
    'service.version': '9',
  })
})

t.test(
  'telemetry settings: variables become attributes, except those whose name suggests a secret',
  async (t) => {
    const found = settings({
      endpoint: 'https://h',
      environmentVariables: ['REGION', 'UNSET', 'DB_PASSWORD'],
    })
    t.same(found?.environment, { 'environment.REGION': 'eu' })
    t.same(found?.warnings, [
      'telemetry.environmentVariables: DB_PASSWORD is left out because its name suggests a secret',
    ])
  },
)

t.test('telemetry settings: a setting that has no effect is reported', async (t) => {
  t.match(settings({})?.warnings, ['telemetry.tracingEnabled has no effect without telemetry.endpoint'])
  t.match(settings({ tracingEnabled: false, metricsEnabled: true })?.warnings, [/^telemetry\.metricsEnabled/])
  t.match(settings({ endpoint: 'https://h', insecure: true })?.warnings, [/^telemetry\.insecure/])
  t.match(settings({ tracingEnabled: false, metricsEnabled: true, enablePrometheusMetricsPath: true }), {
    warnings: [],
    prometheus: true,
    metrics: false,
  })
})
