/** What manifests refer to, checked offline among the given files. */
import t from 'tap'
import { referenceCheck, validateResource } from '../../../hooks/index.ts'
import { checkManifests } from '../../../runtime/cli/manifests/check.ts'
import { readManifests } from '../../../runtime/cli/manifests/read.ts'
import { auth, entry, group, oidcConfig, secret, server, virtual } from '../../hooks/resources.ts'
import { runGatehouse } from '../../helpers/gatehouse.ts'

const named = (name: string, doc: object) => ({ ...doc, metadata: { name, namespace: 'default' } })
const check = (...docs: object[]) => {
  const text = JSON.stringify({ kind: 'List', items: docs })
  const checked = checkManifests(
    readManifests(['-'], () => text),
    { validate: validateResource, references: referenceCheck },
  )
  return {
    problems: checked.flatMap(({ problems }) => problems),
    warnings: checked.flatMap(({ warnings }) => warnings),
  }
}
const inGroup = (name: string) => ({ groupRef: { name } })

t.test('references: an object that is not given is an error when others of its kind are', async (t) => {
  const quickstart = named('quickstart', group)
  t.match(check(quickstart, named('a', server('a', inGroup('quickstat')))).problems, [
    {
      path: 'spec.groupRef.name',
      message: 'there is no MCPGroup "quickstat" among the given files; did you mean "quickstart"?',
    },
  ])
  t.same(check(quickstart, named('a', server('a', inGroup('quickstart')))), { problems: [], warnings: [] })
})

t.test('references: without another of its kind it is a warning', async (t) => {
  t.same(check(named('a', server('a', inGroup('quickstat')))), {
    problems: [],
    warnings: [
      'spec.groupRef.name: MCPGroup "quickstat" is not among the given files; it must be on the cluster',
    ],
  })
})

t.test('references: a namespace of its own', async (t) => {
  const elsewhere = { ...group, metadata: { name: 'tools', namespace: 'elsewhere' } }
  t.match(check(elsewhere, named('a', server('a', inGroup('tools')))).warnings, [/MCPGroup "tools"/])
})

t.test('references: every field is known, wherever it is', async (t) => {
  const refs = {
    ...inGroup('one'),
    embeddingServerRef: { name: 'two' },
    telemetryConfigRef: { name: 'three' },
    incomingAuth: { type: 'oidc', oidcConfigRef: { name: 'four' }, authzConfigRef: { name: 'five' } },
    outgoingAuth: {
      default: { type: 'externalAuthConfigRef', externalAuthConfigRef: { name: 'six' } },
      backends: { a: { type: 'externalAuthConfigRef', externalAuthConfigRef: { name: 'seven' } } },
    },
    config: {
      aggregation: { tools: [{ workload: 'a', toolConfigRef: { name: 'eight' } }] },
      compositeToolRefs: [{ name: 'nine' }],
    },
  }
  const door = named('door', virtual(refs))
  const found = referenceCheck([door])(door).warnings.map((line) =>
    line.replace(/^\S+ (\S+) "(\w+)".*$/, '$1 $2'),
  )
  t.same(found.toSorted(), [
    'EmbeddingServer two',
    'MCPAuthzConfig five',
    'MCPExternalAuthConfig seven',
    'MCPExternalAuthConfig six',
    'MCPGroup one',
    'MCPOIDCConfig four',
    'MCPTelemetryConfig three',
    'MCPToolConfig eight',
    'VirtualMCPCompositeToolDefinition nine',
  ])
  t.match(referenceCheck([door, named('fuor', oidcConfig())])(door).problems, [
    { path: 'spec.incomingAuth.oidcConfigRef.name', message: /did you mean "fuor"/ },
  ])
})

t.test(
  'references: backends that a virtual server names, among the given members of its group',
  async (t) => {
    const tools = named('tools', group)
    const door = (source: string) =>
      named(
        'door',
        virtual({
          ...inGroup('tools'),
          outgoingAuth: { source, backends: { flies: { type: 'discovered' } } },
          config: {
            aggregation: { tools: [{ workload: 'static' }] },
            backends: [{ name: 'static', url: 'https://a.example', transport: 'sse' }],
          },
        }),
      )
    const files = named('files', server('files', inGroup('tools')))
    t.match(check(tools, files, door('inline')).problems, [
      { path: 'spec.outgoingAuth.backends.flies', message: /did you mean "files"/ },
    ])
    t.match(
      check(tools, files, named('flies', entry('flies', inGroup('tools'))), door('discovered')).problems,
      [{ path: 'spec.config.aggregation.tools[0].workload' }],
      'static backends are used with source inline only',
    )
    t.same(check(tools, door('inline')).problems, [], 'no member is given: they may be on the cluster')
  },
)

t.test('references: documents of any state', async (t) => {
  for (const doc of [
    null,
    1,
    {},
    { kind: 'VirtualMCPServer' },
    { kind: 'VirtualMCPServer', spec: { groupRef: 1, config: null } },
  ]) {
    t.same(referenceCheck([doc])(doc), { problems: [], warnings: [] })
  }
})

t.test(
  'validate and render: a reference to nothing is an error with file, line and exit code 1',
  async (t) => {
    const text = [named('quickstart', group), named('a', server('a', inGroup('quickstat')))]
      .map((doc) => JSON.stringify(doc))
      .join('\n---\n')
    for (const command of ['validate', 'render']) {
      const { code, stderr } = await runGatehouse([command, '-f', '-'], text)
      t.equal(code, 1, command)
      t.match(stderr, '-:3: MCPServer/a: spec.groupRef.name: there is no MCPGroup "quickstat"')
    }
    const alone = await runGatehouse(
      ['validate', '-f', '-'],
      JSON.stringify(named('a', server('a', inGroup('x')))),
    )
    t.equal(alone.code, 0, 'a warning does not change the exit code')
    t.match(alone.stderr, 'warning: spec.groupRef.name: MCPGroup "x" is not among the given files')
  },
)

t.test(
  'references: a key that a given Secret does not have is an error; a Secret may be on the cluster',
  async (t) => {
    const header = named('header', auth.header)
    t.same(check(header), { problems: [], warnings: [] })
    t.same(check(header, named('tokens', secret('tokens', { api: 'x' }))), { problems: [], warnings: [] })
    t.match(check(header, named('tokens', secret('tokens', { other: 'x' }))).problems, [
      { path: 'spec.headerInjection.valueSecretRef.key', message: 'Secret "tokens" has no key "api"' },
    ])
  },
)
