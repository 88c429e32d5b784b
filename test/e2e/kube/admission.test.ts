/**
 * Runs the hooks server behind a real API server, over TLS, with the installed webhook configuration. The webhook
 * rejects errors that no schema detects. Other requests do not reach it, and requests fail when it is down.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import jsonPatch, { type Operation } from 'fast-json-patch'
import t from 'tap'
import { stringify } from 'yaml'
import { issueCertificate } from '../../../hooks/certificates/issue.ts'
import { joinBundle } from '../../../hooks/certificates/inspect.ts'
import { startHooksProcess, writeCertificate } from '../../helpers/hooks/process.ts'
import { type KubeApiserver, kubeMissing, startKubeApiserver } from '../../helpers/kube/apiserver.ts'
import { kustomized, manifestsFolder, objectsIn } from '../../helpers/hooks/manifests.ts'
import { untyped } from '../../helpers/untyped.ts'

const hour = 3_600_000

/** The installed configuration, with a port of this machine instead of the Service. */
function webhookConfiguration(port: number, bundle: string): object {
  const found = kustomized('base').find(({ kind }) => kind === 'ValidatingWebhookConfiguration')
  const webhooks: { clientConfig: object }[] = untyped(found?.['webhooks'])
  const caBundle = Buffer.from(bundle).toString('base64')
  const clientConfig = { url: `https://localhost:${port}/validate`, caBundle }
  return { ...found, webhooks: webhooks.map((webhook) => ({ ...webhook, clientConfig })) }
}

/** Returns a document of an example with a patch. */
function edited(example: string, kind: string, ...patch: readonly Operation[]): string {
  const files = globSync(join(manifestsFolder, 'examples', example, '*.yaml')).toSorted()
  const found = files
    .flatMap((file) => objectsIn(readFileSync(file, 'utf8')))
    .find((object) => object.kind === kind)
  if (!found) throw new Error(`no ${kind} in example ${example}`)
  return stringify(jsonPatch.applyPatch(found, patch).newDocument)
}

const set = (path: string, value: unknown): Operation => ({ op: 'replace', path, value })

/** Manifests that pass every schema and rule of the definitions, and that only the webhook rejects. */
const refusals = [
  {
    title: 'a Cedar policy that does not parse',
    document: edited('authz', 'MCPAuthzConfig', set('/spec/config/policies/1', 'permit principal')),
    words: 'spec.config.policies[1]',
  },
  {
    title: 'an unknown kind of policy engine',
    document: edited('authz', 'MCPAuthzConfig', set('/spec/type', 'regov1')),
    words: 'spec.type',
  },
  {
    title: 'a role matcher that does not compile',
    document: edited(
      'cloud-sts',
      'MCPExternalAuthConfig',
      set('/spec/cloudSts/roleMappings/1/matcher', 'claims.groups =='),
    ),
    words: 'spec.cloudSts.roleMappings[1].matcher',
  },
  {
    title: 'a workflow that depends on itself',
    document: edited(
      'composite-tools',
      'VirtualMCPCompositeToolDefinition',
      set('/spec/steps/2/dependsOn', ['tell']),
    ),
    words: 'have a circular dependency',
  },
  {
    title: 'a workflow step that depends on an unknown step',
    document: edited(
      'composite-tools',
      'VirtualMCPCompositeToolDefinition',
      set('/spec/steps/2/dependsOn', ['nobody']),
    ),
    words: 'nobody',
  },
]

await t.test('admission', { skip: kubeMissing() }, async (t) => {
  const kube: KubeApiserver = await startKubeApiserver(t)
  kube.must(['apply', '--server-side', '-f', join(manifestsFolder, 'crds')])
  kube.must(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s'])

  const folder = t.testdir()
  const request = { names: ['localhost'], lifetimeMs: 24 * hour }
  const first = await issueCertificate({ ...request, now: new Date() })
  writeCertificate(folder, first)
  const hooks = await startHooksProcess(t, folder)
  kube.must(['apply', '-f', '-'], JSON.stringify(webhookConfiguration(hooks.port, first.ca)))
  const create = (document: string, ...more: string[]) =>
    kube.kubectl(['create', ...more, '-f', '-'], document)

  await t.test('the configuration takes effect', async (t) => {
    // An API server applies a new configuration after a delay, so this polls.
    const probe = edited('authz', 'MCPAuthzConfig', set('/spec/config/policies/0', 'nonsense'))
    for (;;) {
      await pause(100)
      const { code, stderr } = create(probe, '--dry-run=server')
      if (code !== 0) return t.match(stderr, 'admission webhook "validate.gatehouse.dev" denied the request')
    }
  })

  await t.test('the examples are admitted', async (t) => {
    for (const example of ['quickstart', 'authz', 'cloud-sts', 'composite-tools', 'embedded-auth-server']) {
      const { code, stderr } = kube.kubectl(['apply', '-k', join(manifestsFolder, 'examples', example)])
      t.equal(code, 0, stderr)
    }
  })

  for (const { title, document, words } of refusals) {
    await t.test(`rejected: ${title}`, async (t) => {
      const { code, stderr } = create(document, '--dry-run=server')
      t.not(code, 0)
      t.match(stderr, 'validate.gatehouse.dev')
      t.match(stderr, words)
    })
  }

  await t.test('kubectl prints a warning', async (t) => {
    const document = {
      apiVersion: 'gatehouse.dev/v1beta1',
      kind: 'MCPExternalAuthConfig',
      spec: { type: 'unauthenticated' },
    }
    const { code, stderr } = create(JSON.stringify({ ...document, metadata: { name: 'open' } }))
    t.equal(code, 0, stderr)
    t.match(stderr, /Warning: .*credentials/)
  })

  await t.test(
    'deletion: rejected while in use, with the names of the users; allowed by annotation',
    async (t) => {
      const object = ['mcpexternalauthconfig', 'cloud-roles']
      const status = {
        referenceCount: 1,
        referencingWorkloads: [{ kind: 'VirtualMCPServer', name: 'cloud' }],
      }
      kube.must([
        'patch',
        ...object,
        '--subresource=status',
        '--type=merge',
        '-p',
        JSON.stringify({ status }),
      ])
      const refused = kube.kubectl(['delete', ...object])
      t.not(refused.code, 0)
      t.match(refused.stderr, /in use by VirtualMCPServer cloud/)
      const namespaceController = [
        '--as=system:serviceaccount:kube-system:namespace-controller',
        '--as-group=system:masters',
      ]
      const emptied = kube.kubectl(['delete', ...object, '--dry-run=server', ...namespaceController])
      t.equal(emptied.code, 0, 'deleting the namespace deletes all objects')
      kube.must(['annotate', ...object, 'gatehouse.dev/allow-delete=true'])
      t.equal(kube.kubectl(['delete', ...object]).code, 0)
    },
  )

  await t.test(
    'a new certificate is loaded without a restart, while both authorities are trusted',
    async (t) => {
      const second = await issueCertificate({ ...request, now: new Date() })
      const both = webhookConfiguration(hooks.port, joinBundle([first.ca, second.ca]))
      kube.must(['apply', '-f', '-'], JSON.stringify(both))
      const taken = hooks.logged('the serving certificate was reloaded')
      writeCertificate(folder, second)
      await taken
      const { stderr } = create(refusals[0]?.document ?? '', '--dry-run=server')
      t.match(stderr, 'denied the request')
    },
  )

  await t.test(
    'without a hooks server, objects cannot be created, but labels, finalizers and deletion work',
    async (t) => {
      await hooks.stop()
      const refused = create(edited('oidc', 'MCPOIDCConfig'))
      t.not(refused.code, 0, 'fails closed')
      t.match(refused.stderr, 'failed calling webhook')
      const server = ['virtualmcpserver', 'quickstart']
      t.equal(kube.kubectl(['label', ...server, 'team=a']).code, 0, 'a label')
      const finalizers = (list: string[]) => [
        '--type=merge',
        '-p',
        JSON.stringify({ metadata: { finalizers: list } }),
      ]
      t.equal(kube.kubectl(['patch', ...server, ...finalizers(['example.com/wait'])]).code, 0)
      kube.must(['delete', ...server, '--wait=false'])
      t.equal(
        kube.kubectl(['patch', ...server, ...finalizers([])]).code,
        0,
        'a finalizer of an object in deletion',
      )
      t.not(kube.kubectl(['get', ...server]).code, 0, 'the object is deleted')
      const marked = ['mcpauthzconfig', 'platform-policies']
      t.not(kube.kubectl(['delete', ...marked]).code, 0, 'an object that may be in use stays')
      kube.must(['annotate', ...marked, 'gatehouse.dev/allow-delete=true'])
      t.equal(kube.kubectl(['delete', ...marked]).code, 0, 'the annotation allows the deletion')
    },
  )
})
