/** Condition reasons that users see when a referenced object is missing or invalid, one test per reason. */
import t from 'tap'
import { proves } from '../../helpers/proves.ts'
import {
  auth,
  authzConfig,
  embedded,
  entry,
  oidc,
  oidcConfig,
  remote,
  resource,
  server,
  virtual,
  world,
} from '../../hooks/resources.ts'
import type { Condition, World } from '../../hooks/world.ts'

function conditionOf(w: World, kind: string, name: string, type: string): Condition | undefined {
  const { conditions } = w.get(kind, name)['status'] as { conditions: Condition[] }
  return conditions.find((one) => one.type === type)
}
const doorCondition = (w: World, type: string) => conditionOf(w, 'VirtualMCPServer', 'door', type)

t.test(
  'AuthServerConfigValidated: the condition names the problem, even when admission rejects the whole manifest',
  async (t) => {
    proves('3.event.AuthServerConfigValidated', '3.error.primaryUpstreamProvider')
    const inline = {
      policies: ['permit(principal, action, resource);'],
      primaryUpstreamProvider: 'elsewhere',
    }
    const checked = (spec: object, ...more: Parameters<typeof world>) =>
      doorCondition(world(virtual(spec), oidcConfig(), ...more).settle(), 'AuthServerConfigValidated')
    const authzConfigInline = { type: 'inline', inline }
    t.match(checked({ incomingAuth: { ...oidc, authzConfig: authzConfigInline } }), {
      status: 'False',
      reason: 'AuthzPrimaryProviderRequiresAuthServer',
    })
    t.match(
      checked({ incomingAuth: { ...oidc, authzConfig: authzConfigInline }, authServerConfig: embedded() }),
      { status: 'False', reason: 'AuthzUpstreamUnknown' },
    )
    t.match(
      checked({
        incomingAuth: oidc,
        authServerConfig: embedded({ issuer: 'https://u:p@login.example.com' }),
      }),
      { status: 'False', reason: 'AuthServerConfigInvalid', message: /credentials/ },
    )
    t.equal(checked({ incomingAuth: { type: 'anonymous' } }), undefined, 'no condition without a server')
    const shared = authzConfig({ primary_upstream_provider: 'elsewhere' })
    t.match(
      checked(
        {
          incomingAuth: { ...oidc, authzConfigRef: { name: 'policies' } },
          authServerConfig: embedded(),
        },
        shared,
      ),
      { status: 'False', reason: 'AuthzUpstreamUnknown', message: /elsewhere is not one of corp/ },
      'a shared configuration can only be checked here',
    )
  },
)

t.test('BackendsPending: the backends have not been checked yet', async (t) => {
  const w = world(server('files'), virtual()).settle()
  w.setStatus('Deployment', 'vmcp-door', { availableReplicas: 1, readyReplicas: 1, replicas: 1 }).settle()
  t.match(doorCondition(w, 'Ready'), { status: 'False', reason: 'BackendsPending' })
})

t.test('CompositeToolRefInvalid: the condition names the invalid workflow and its error', async (t) => {
  const workflow = (steps: object[]) =>
    resource('VirtualMCPCompositeToolDefinition', 'digest', { name: 'digest', description: 'Sums up', steps })
  const refs = { config: { compositeToolRefs: [{ name: 'digest' }] } }
  const circle = world(
    virtual(refs),
    workflow([
      { id: 'a', tool: 'files.read', dependsOn: ['b'] },
      { id: 'b', tool: 'files.read', dependsOn: ['a'] },
    ]),
  ).settle()
  t.match(doorCondition(circle, 'CompositeToolRefsValidated'), {
    status: 'False',
    reason: 'CompositeToolRefInvalid',
    message: /digest/,
  })
  const one = { name: 'digest', description: 'Another', steps: [{ id: 'a', tool: 'files.read' }] }
  const twice = world(
    virtual({ config: { ...refs.config, compositeTools: [one] } }),
    workflow([{ id: 'a', tool: 'files.read' }]),
  ).settle()
  t.match(doorCondition(twice, 'CompositeToolRefsValidated'), {
    reason: 'CompositeToolRefInvalid',
    message: /more than one workflow is called digest/,
  })
})

t.test('the reason of an invalid workflow does not depend on text from its spec', async (t) => {
  const steps = [{ id: 'a', tool: 'files.read', dependsOn: ['JSON Schema'] }]
  const definition = { name: 'digest', description: 'Sums up', steps }
  const w = world(resource('VirtualMCPCompositeToolDefinition', 'digest', definition)).settle()
  t.match(conditionOf(w, 'VirtualMCPCompositeToolDefinition', 'digest', 'WorkflowValidated'), {
    reason: 'ValidationFailed',
    message: 'spec.steps[0].dependsOn: unknown step "JSON Schema"',
  })
})

t.test('EmbeddingServerNotReady: the server waits and then starts without intervention', async (t) => {
  const w = world(
    resource('EmbeddingServer', 'words', {}),
    virtual({ embeddingServerRef: { name: 'words' }, config: { optimizer: {} } }),
  ).settle()
  t.match(doorCondition(w, 'EmbeddingServerReady'), { status: 'False', reason: 'EmbeddingServerNotReady' })
  t.match(w.get('VirtualMCPServer', 'door')['status'], {
    phase: 'Pending',
    message: 'Waiting for EmbeddingServer to become ready',
  })
  t.notOk(
    [...w.objects.keys()].some((key) => key.includes('vmcp-door')),
    'no pods meanwhile',
  )
  w.setStatus('StatefulSet', 'embedding-words', {
    availableReplicas: 1,
    readyReplicas: 1,
    replicas: 1,
  }).settle()
  t.match(doorCondition(w, 'EmbeddingServerReady'), { status: 'True' })
})

t.test('InvalidExternalAuthConfig: entries and proxies report the reason', async (t) => {
  const broken = { ...auth.header, spec: { ...(auth.header['spec'] as object), headerInjection: undefined } }
  const ref = { externalAuthConfigRef: { name: 'header' } }
  const w = world(broken, entry('a', ref), remote('b', ref)).settle()
  t.match(conditionOf(w, 'MCPServerEntry', 'a', 'ExternalAuthConfigValidated'), {
    status: 'False',
    reason: 'InvalidExternalAuthConfig',
    message: /headerInjection/,
  })
  t.match(conditionOf(w, 'MCPRemoteProxy', 'b', 'ExternalAuthConfigValidated'), {
    status: 'False',
    reason: 'InvalidExternalAuthConfig',
  })
})

t.test('AuthzPolicySyntaxInvalid: a proxy names the invalid policy', async (t) => {
  const authzConfig = {
    type: 'inline',
    inline: { policies: ['permit(principal, action, resource);', 'let all'] },
  }
  const w = world(remote('b', { authzConfig })).settle()
  t.match(conditionOf(w, 'MCPRemoteProxy', 'b', 'ConfigurationValid'), {
    status: 'False',
    reason: 'AuthzPolicySyntaxInvalid',
    message: /policies\[1\]/,
  })
})

t.test('UnknownBackend: settings for an unknown backend are reported, and nothing stops', async (t) => {
  const spec = {
    outgoingAuth: { source: 'discovered', backends: { flies: { type: 'discovered' } } },
    config: {
      aggregation: {
        conflictResolution: 'priority',
        conflictResolutionConfig: { priorityOrder: ['files', 'notes'] },
        tools: [{ workload: 'files' }],
      },
      operational: { timeouts: { perWorkload: { flies: '5s' } } },
    },
  }
  const w = world(server('files'), virtual(spec)).ready()
  t.same(doorCondition(w, 'BackendNamesValidated')?.message.split('; ').sort(), [
    'did you mean "files"?',
    'did you mean "files"?',
    'spec.config.aggregation.conflictResolutionConfig.priorityOrder[1]: unknown backend "notes"',
    'spec.config.operational.timeouts.perWorkload.flies: unknown backend "flies"',
    'spec.outgoingAuth.backends.flies: unknown backend "flies"',
  ])
  t.match(doorCondition(w, 'BackendNamesValidated'), { status: 'False', reason: 'UnknownBackend' })
  t.ok(w.get('Deployment', 'vmcp-door'), 'the server runs')
  const all = world(server('files'), entry('flies'), server('notes'), virtual(spec)).ready()
  t.match(doorCondition(all, 'BackendNamesValidated'), { status: 'True', reason: 'AllKnown' })
  t.equal(
    doorCondition(world(server('files'), virtual()).ready(), 'BackendNamesValidated'),
    undefined,
    'no condition without names',
  )
})
