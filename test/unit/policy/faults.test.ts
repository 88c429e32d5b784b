/** Log entries about failing policies, and values that they must not contain. */
import t from 'tap'
import { type Log, type LogFields, makeCaller } from '../../../runtime/net/index.ts'
import { makeAuthorizer } from '../../../runtime/policy/index.ts'

interface Line {
  readonly level: string
  readonly message: string
  readonly fields: LogFields | undefined
}

function recordingLog(lines: Line[]): Log {
  const write =
    (level: string) =>
    (message: string, fields?: LogFields): void =>
      void lines.push({ level, message, fields })
  const log: Log = {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: () => log,
    debugEnabled: true,
    infoEnabled: true,
  }
  return log
}

async function run(policies: readonly string[], args: readonly string[], claims = {}): Promise<Line[]> {
  const lines: Line[] = []
  const authorizer = makeAuthorizer(
    { policies, entitiesJson: '[]', groupEntityType: 'ServiceGroup' },
    { serverName: 'front', log: recordingLog(lines) },
  )
  const subject = await authorizer.subject(
    makeCaller({ issuer: 'i', subject: 'ada', claims: { sub: 'ada', ...claims } }),
  )
  for (const one of args)
    authorizer.decide(subject, { action: 'call_tool', id: 'echo', arguments: Buffer.from(one) })
  return lines
}

t.test(
  'errors: the first is a warning, the following are debug lines, each with the index of the policy',
  async (t) => {
    const lines = await run(
      [
        'permit(principal, action, resource);',
        'forbid(principal, action, resource) when { context.arg_n > 3 };',
      ],
      ['{"n":"a"}', '{"n":"b"}', '{"m":1}', '{}'],
    )
    t.strictSame(
      lines.map(({ level, fields }) => [level, fields]),
      [
        [
          'warn',
          { policy: 'policies[1]', effect: 'forbid', reason: 'type error: expected long, got string' },
        ],
        [
          'debug',
          { policy: 'policies[1]', effect: 'forbid', reason: 'type error: expected long, got string' },
        ],
        [
          'warn',
          {
            policy: 'policies[1]',
            effect: 'forbid',
            reason: 'the attribute arg_n is absent; check for it with has',
          },
        ],
      ],
      'the last one is still recorded',
    )
  },
)

t.test('errors: nothing that a caller sent is repeated', async (t) => {
  const secret = 'hunter2-`"quoted'
  const lines = await run(
    [
      'permit(principal, action, resource) when { decimal(context.arg_d) == decimal("1.0") };',
      'permit(principal, action, resource) when { ip(context.arg_d).isLoopback() };',
      'permit(principal, action, resource) when { principal.claim_k.x == 1 };',
      'permit(principal, action, resource) when { context.arg_n * context.arg_n * context.arg_n > 1 };',
      'permit(principal, action, resource) when { context.arg_big > 1 };',
    ],
    [JSON.stringify({ d: secret, n: 9007199254740991 }), `{"big":1e300,"${secret.replaceAll('"', '')}":1}`],
    { k: { [secret]: 1 } },
  )
  t.ok(lines.length >= 5, `${lines.length} lines`)
  t.notMatch(JSON.stringify(lines), /hunter2|9007199254740991|1e\+?300/)
  t.strictSame(
    lines
      .filter(({ level }) => level === 'warn')
      .map(({ fields }) => String(fields?.['reason']))
      .sort(),
    [
      'decimal does not accept this value',
      'integer overflow',
      'ipaddr does not accept this value',
      'the attribute arg_big is absent; check for it with has',
      'the attribute x is absent; check for it with has',
      'the value of arg_big has no Cedar representation; the request is denied',
    ],
  )
})
