/**
 * A real API server accepts the definitions, explains them, stores every example, and rejects what the offline
 * validator rejects. Messages of our own rules are the same in both.
 */
import { globSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import jsonPatch from 'fast-json-patch'
import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { formatViolations, kinds, validateManifest } from '../../../schemas/index.ts'
import { type BadManifest, badManifests } from '../../helpers/hooks/bad-manifests.ts'
import { kstatusOf } from '../../helpers/hooks/kstatus.ts'
import { type KubeApiserver, kubeMissing, startKubeApiserver } from '../../helpers/kube/apiserver.ts'

const root = resolve(import.meta.dirname, '../../../manifests')
const skip = kubeMissing()

interface Listed {
  readonly items: readonly {
    readonly metadata: { readonly name: string }
    readonly status: { readonly conditions: readonly { type: string; status: string; message: string }[] }
  }[]
}

async function withCrds(t: Parameters<typeof startKubeApiserver>[0]): Promise<KubeApiserver> {
  const kube = await startKubeApiserver(t)
  kube.must(['apply', '--server-side', '-f', join(root, 'crds')])
  kube.must(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s'])
  return kube
}

/** Returns the first document of that kind in the example, with the patch applied. */
function badDocument({ of: [example, kind], patch }: BadManifest): object {
  const files = globSync(join(root, 'examples', example, '*.yaml')).toSorted()
  const all = files.flatMap((file) =>
    parseAllDocuments(readFileSync(file, 'utf8')).map((one): object => one.toJS()),
  )
  const found = all.find((one) => 'kind' in one && one.kind === kind)
  if (!found) throw new Error(`no ${kind} in example ${example}`)
  return jsonPatch.applyPatch(found, patch).newDocument
}

await t.test('definitions in a real API server', { skip }, async (t) => {
  const kube = await withCrds(t)

  await t.test('definitions: all are established, structural, and within the cost limits', async (t) => {
    const { items }: Listed = kube.get(['crd'])
    t.strictSame(
      items.map(({ metadata }) => metadata.name),
      kinds.map(({ plural }) => `${plural}.gatehouse.dev`).toSorted(),
    )
    for (const { metadata, status } of items) {
      for (const { type, status: value, message } of status.conditions) {
        const good = ['Established', 'NamesAccepted'].includes(type) ? 'True' : 'False'
        t.equal(value, good, `${metadata.name} ${type}: ${message}`)
      }
    }
  })

  await t.test('definitions: fit a client-side apply', async (t) => {
    const { stderr, code } = kube.kubectl(['apply', '--dry-run=server', '-f', join(root, 'crds')])
    t.equal(code, 0, stderr)
  })

  await t.test('kubectl explain: describes every kind and its spec', async (t) => {
    for (const { kind, singular } of kinds) {
      const { code, stdout, stderr } = kube.kubectl(['explain', `${singular}.spec`])
      t.equal(code, 0, stderr)
      t.match(stdout, `KIND:       ${kind}`)
      t.match(stdout, /FIELDS:\n {2}\w/)
    }
  })

  await t.test('kubectl get gatehouse: lists all kinds by their category', async (t) => {
    const { code, stderr } = kube.kubectl(['get', 'gatehouse', '-A'])
    t.equal(code, 0, stderr)
  })

  for (const example of readdirSync(join(root, 'examples'))) {
    await t.test(`example ${example}: applies, twice, in its own namespace`, async (t) => {
      kube.must(['create', 'namespace', example])
      const folder = join(root, 'examples', example)
      const first = kube.kubectl(['apply', '--server-side', '-n', example, '-k', folder])
      t.equal(first.code, 0, first.stderr)
      const second = kube.kubectl(['diff', '--server-side', '-n', example, '-k', folder])
      t.equal(second.code, 0, `stored as written:\n${second.stdout}`)
    })
  }

  await t.test('status: no tool treats an object as ready before the hooks have processed it', async (t) => {
    const { items }: { items: (Parameters<typeof kstatusOf>[0] & { kind: string; status?: object })[] } =
      kube.get(['gatehouse', '-A'])
    t.ok(items.length > 20)
    const left = new Set<string>(kinds.map(({ kind }) => kind))
    for (const item of items) {
      left.delete(item.kind)
      t.match(item.status, { observedGeneration: -1 }, item.kind)
      t.equal(kstatusOf(item), 'InProgress', item.kind)
    }
    t.ok(left.size < 4, `missing kinds: ${[...left].join()}`)
  })

  await t.test(
    'status: is a subresource; a status with observedGeneration and conditions is stored completely',
    async (t) => {
      const status = {
        phase: 'Ready',
        serverCount: 3,
        observedGeneration: 1,
        conditions: [
          {
            type: 'MCPServersChecked',
            status: 'True',
            reason: 'Checked',
            message: '',
            lastTransitionTime: '2026-01-02T03:04:05Z',
          },
        ],
      }
      const patch = JSON.stringify({ status })
      const object = ['mcpgroup', 'quickstart', '-n', 'quickstart']
      kube.must(['patch', ...object, '--subresource=status', '--type=merge', '-p', patch])
      const stored: { status: object } = kube.get(object)
      t.match(stored.status, status)
      kube.must(['patch', ...object, '--type=merge', '-p', JSON.stringify({ status: { phase: 'Failed' } })])
      t.equal(kube.get(object).status.phase, 'Ready', 'the main endpoint does not write the status')
    },
  )

  for (const bad of badManifests) {
    await t.test(`rejected: ${bad.title}`, async (t) => {
      const document = badDocument(bad)
      t.match(formatViolations(validateManifest(document)), bad.words, 'offline')
      const { code, stderr } = kube.kubectl(
        ['create', '--dry-run=server', '-f', '-'],
        JSON.stringify(document),
      )
      t.not(code, 0, 'rejected by the API server')
      t.match(stderr, bad.words, bad.cel ? 'in the same words' : 'naming the field')
    })
  }
})
