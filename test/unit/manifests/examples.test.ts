/** The examples: every document passes the webhook's checks, is complete, and describes its purpose. */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { untyped } from '../../helpers/untyped.ts'
import { validateResource } from '../../../hooks/index.ts'
import { kindOfField } from '../../../hooks/kinds/referrers.ts'
import { formatViolations, isDnsSubdomain, kinds } from '../../../schemas/index.ts'

const root = resolve(import.meta.dirname, '../../../manifests/examples')

interface Document {
  readonly file: string
  readonly kind: string
  readonly name: string
  readonly value: Record<string, unknown>
}

/** Returns the documents of one example, in the order of its kustomization. */
function documents(example: string): readonly Document[] {
  const { resources }: { resources: string[] } = parseOne(join(root, example, 'kustomization.yaml'))
  return resources.flatMap((file) => {
    const text = readFileSync(join(root, example, file), 'utf8')
    return parseAllDocuments(text).map((document) => {
      if (document.errors[0]) throw document.errors[0]
      const value: Record<string, unknown> & { kind: string; metadata: { name: string } } = document.toJS()
      return { file, kind: value.kind, name: value.metadata.name, value }
    })
  })
}

function parseOne(path: string): ReturnType<typeof untyped> {
  return parseAllDocuments(readFileSync(path, 'utf8'))[0]?.toJS()
}

/** The kind that each `…Ref: {name}` of a Gatehouse kind refers to. */
const targets: Readonly<Record<string, string>> = Object.fromEntries(kindOfField)

function references(value: unknown): { kind: string; name: string }[] {
  if (Array.isArray(value)) return value.flatMap(references)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, member]: [string, unknown]) => {
    const kind = targets[key]
    const named = Array.isArray(member) ? member : [member]
    const own: { name: string }[] = named.filter((one) => typeof untyped(one)?.name === 'string')
    return [...(kind ? own.map(({ name }) => ({ kind, name })) : []), ...references(member)]
  })
}

function isOurs({ value }: Document): boolean {
  return String(value['apiVersion']).startsWith('gatehouse.dev/')
}

const examples = readdirSync(root).toSorted()

await t.test('examples: one for each main use, and the quickstart', async (t) => {
  const wanted =
    'authz catalogue cloud-sts composite-tools decision-point embedded-auth-server header-injection machine-clients oidc optimizer platform-identities quickstart quotas redis-sessions remote-entry rest-service token-exchange tool-locks webhooks workflows'
  for (const name of wanted.split(' ')) t.ok(examples.includes(name), name)
})

await t.test('examples: every kind is used in at least one', async (t) => {
  const used = new Set(examples.flatMap(documents).map(({ kind }) => kind))
  for (const { kind } of kinds) t.ok(used.has(kind), kind)
})

for (const example of examples) {
  const all = documents(example)

  await t.test(`${example}: every document is admitted without a warning`, async (t) => {
    for (const { kind, name, value } of all.filter(isOurs)) {
      const { violations, warnings } = validateResource(value)
      t.strictSame(violations, [], `${kind} ${name}: ${formatViolations(violations)}`)
      // The quickstart is for a laptop, where a local command starts its servers.
      if (example !== 'quickstart') t.strictSame(warnings, [], `${kind} ${name}`)
      t.ok(isDnsSubdomain(name), name)
    }
  })

  await t.test(`${example}: contains every object that it refers to, each once`, async (t) => {
    const there = all.map(({ kind, name }) => `${kind} ${name}`)
    t.equal(new Set(there).size, there.length)
    for (const { value, file } of all) {
      for (const { kind, name } of references(value))
        t.ok(there.includes(`${kind} ${name}`), `${file}: ${kind} ${name}`)
    }
  })

  await t.test(
    `${example}: the first line describes the purpose, and the kustomization lists all files`,
    async (t) => {
      const { resources }: { resources: string[] } = parseOne(join(root, example, 'kustomization.yaml'))
      t.match(readFileSync(join(root, example, resources[0] ?? ''), 'utf8'), /^# \S/)
      const files = readdirSync(join(root, example)).filter((name) => name !== 'kustomization.yaml')
      t.strictSame(files.toSorted(), resources.toSorted())
      for (const file of resources) t.ok(existsSync(join(root, example, file)))
    },
  )
}

await t.test('platform-identities: the token of the pod is the token that the server expects', async (t) => {
  const all = documents('platform-identities')
  const specOf = (kind: string) => untyped(all.find((document) => document.kind === kind)?.value)?.spec
  const { issuer, clients, trustedIssuers } = specOf('VirtualMCPServer').authServerConfig
  const [{ federated }] = clients
  const job = untyped(all.find(({ kind }) => kind === 'CronJob')?.value)
  const pod = job.spec.jobTemplate.spec.template.spec
  const [{ serviceAccountToken: token }] = pod.volumes[0].projected.sources
  t.equal(token.audience, issuer)
  t.equal(federated.subject, `system:serviceaccount:reports:${pod.serviceAccountName}`)
  t.match(trustedIssuers[0], { name: federated.issuerRef, preset: 'kubernetes' })
  const [{ mountPath }] = pod.containers[0].volumeMounts
  t.match(pod.containers[0].args[0], `client_assertion@${mountPath}/${token.path}`)
  t.match(pod.containers[0].args[0], `${issuer}/oauth/token`)
})

const kubectl = spawnSync('kubectl', ['version', '--client']).status === 0
await t.test('examples: each has a kustomization', { skip: !kubectl && 'no kubectl in PATH' }, async (t) => {
  for (const example of examples) {
    const { status, stderr } = spawnSync('kubectl', ['kustomize', join(root, example)], { encoding: 'utf8' })
    t.equal(status, 0, `${example}: ${stderr}`)
  }
})
