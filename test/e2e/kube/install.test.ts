/**
 * Installs the manifests on a real API server as the documentation describes. The pods would be admitted, and the
 * certificate job works with exactly its own rights.
 */
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Command } from 'commander'
import t from 'tap'
import { kinds } from '../../../schemas/index.ts'
import { addCertificatesCommand } from '../../../hooks/certificates/command.ts'
import { checkFitness, sameBundle, splitBundle } from '../../../hooks/certificates/inspect.ts'
import { type KubeApiserver, kubeMissing, startKubeApiserver } from '../../helpers/kube/apiserver.ts'
import { manifestsFolder } from '../../helpers/hooks/manifests.ts'
import { compositeControllerCrd } from '../../helpers/kube/metacontroller-crd.ts'

const namespace = 'gatehouse-system'
const account = `system:serviceaccount:${namespace}:gatehouse-certificates`

interface Secret {
  readonly data?: Readonly<Record<string, string>>
}

interface Trust {
  readonly items: readonly {
    readonly webhooks?: readonly { readonly clientConfig: { readonly caBundle?: string } }[]
    readonly spec?: { readonly hooks: Record<string, { webhook: { caBundle?: { inline: string } } }> }
  }[]
}

/** Returns the CA bundle of every client of the hooks server. */
function bundles(kube: KubeApiserver): readonly string[] {
  const { items }: Trust = kube.get(['validatingwebhookconfigurations,compositecontrollers'])
  return items.flatMap(({ webhooks, spec }) => [
    ...(webhooks ?? []).map((one) => Buffer.from(one.clientConfig.caBundle ?? '', 'base64').toString('utf8')),
    ...Object.values(spec?.hooks ?? {}).map(({ webhook }) => webhook.caBundle?.inline ?? ''),
  ])
}

function stored(kube: KubeApiserver): Record<string, string> {
  const { data = {} }: Secret = kube.get(['secret', 'gatehouse-hooks-tls', '-n', namespace])
  return Object.fromEntries(
    Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]),
  )
}

/** The arguments that the installed Job runs with. */
function jobOf(kube: KubeApiserver): readonly string[] {
  const args: readonly string[] = kube.get(['jobs', '-n', namespace]).items[0].spec.template.spec
    .containers[0].args
  return args
}

async function certificates(args: readonly string[]): Promise<void> {
  const program = new Command().exitOverride()
  addCertificatesCommand(program, () => {})
  await program.parseAsync(args, { from: 'user' })
}

t.setTimeout(240_000)

await t.test('an installation on a real API server', { skip: kubeMissing() }, async (t) => {
  t.setTimeout(240_000)
  const kube = await startKubeApiserver(t)
  kube.must(['apply', '-f', '-'], JSON.stringify(compositeControllerCrd))
  kube.must(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s'])

  await t.test(
    'kubectl apply -k manifests/: installs with one command; a second run changes nothing',
    async (t) => {
      const first = kube.kubectl(['apply', '-k', manifestsFolder])
      t.equal(first.code, 0, first.stderr)
      const second = kube.kubectl(['apply', '-k', manifestsFolder])
      t.equal(second.code, 0, second.stderr)
      // Each apply replaces the selector of a disruption budget as a whole, which kubectl always reports as a change.
      const changed = second.stdout.split('\n').filter((line) => line && !line.endsWith(' unchanged'))
      t.strictSame(changed, ['poddisruptionbudget.policy/gatehouse-hooks configured'])
      t.equal(second.stderr, '', 'no warnings')
    },
  )

  await t.test('kubectl apply -k …/private-metacontroller: applies on top of it', async (t) => {
    const args = ['apply', '--server-side', '--force-conflicts', '--dry-run=server']
    const { code, stderr } = kube.kubectl([
      ...args,
      '-k',
      join(manifestsFolder, 'overlays/private-metacontroller'),
    ])
    t.equal(code, 0, stderr)
  })

  await t.test('pods: every template passes the restricted profile of the namespace', async (t) => {
    const {
      items,
    }: { items: { metadata: { name: string }; spec: { template: { metadata: object; spec: object } } }[] } =
      kube.get(['deployments,jobs', '-n', namespace])
    t.equal(items.length, 2)
    for (const { metadata, spec } of items) {
      const pod = {
        apiVersion: 'v1',
        kind: 'Pod',
        ...spec.template,
        metadata: { name: metadata.name, namespace },
      }
      const { code, stderr } = kube.kubectl(['create', '--dry-run=server', '-f', '-'], JSON.stringify(pod))
      t.equal(code, 0, stderr)
    }
    const root = { containers: [{ name: 'a', image: 'a:1' }] }
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'root', namespace }, spec: root }
    const refused = kube.kubectl(['create', '--dry-run=server', '-f', '-'], JSON.stringify(pod))
    t.match(refused.stderr, 'violates PodSecurity', 'the profile is enforced')
  })

  await t.test('rights of the certificate job: only the named objects', async (t) => {
    const may = (...args: string[]) => kube.kubectl(['auth', 'can-i', ...args, '--as', account]).code === 0
    t.ok(may('update', 'secrets/gatehouse-hooks-tls', '-n', namespace))
    t.ok(may('patch', 'validatingwebhookconfigurations/gatehouse-hooks'))
    t.ok(may('patch', 'compositecontrollers/mcpservers.gatehouse.dev'))
    t.notOk(may('get', 'secrets', '-n', namespace), 'no other Secret')
    t.notOk(may('create', 'secrets', '-n', namespace))
    t.notOk(may('get', 'secrets/gatehouse-hooks-tls', '-n', 'default'))
    t.notOk(may('patch', 'validatingwebhookconfigurations/other'))
    t.notOk(may('delete', 'compositecontrollers/mcpservers.gatehouse.dev'))
  })

  const args = jobOf(kube)
  const config = kube.configOf('gatehouse-certificates', namespace)
  const names = ['gatehouse-hooks.gatehouse-system.svc', 'gatehouse-hooks.gatehouse-system.svc.cluster.local']

  await t.test(
    'certificate job: two concurrent runs agree on one certificate that every client trusts',
    async (t) => {
      t.strictSame(stored(kube), {}, 'the Secret is created empty')
      await Promise.all([
        certificates([...args, '--kubeconfig', config]),
        certificates([...args, '--kubeconfig', config]),
      ])
      const held = stored(kube)
      const pair = { certificate: held['tls.crt'] ?? '', key: held['tls.key'] ?? '' }
      t.ok(checkFitness(pair, held['ca.crt'] ?? '', names, new Date()).fit)
      const all = bundles(kube)
      t.ok(all.length >= 3)
      for (const bundle of all) t.ok(sameBundle(bundle, held['ca.crt'] ?? ''), 'trusted everywhere')
      t.strictSame(Object.keys(held).toSorted(), ['ca.crt', 'tls.crt', 'tls.key'], 'no CA key is stored')
    },
  )

  await t.test('a second apply of the manifests keeps certificate and trust', async (t) => {
    const before = [stored(kube), bundles(kube)]
    kube.must(['apply', '-k', manifestsFolder])
    t.strictSame([stored(kube), bundles(kube)], before)
    const serverSide = ['apply', '--server-side', '--force-conflicts', '--field-manager=gitops']
    kube.must([...serverSide, '-k', manifestsFolder])
    t.strictSame([stored(kube), bundles(kube)], before, 'server-side as well')
  })

  await t.test('rotation: stages, promotes and retires, one step per run', async (t) => {
    const first = stored(kube)['tls.crt']
    await certificates([...args, '--kubeconfig', config, '--force'])
    t.equal(stored(kube)['tls.crt'], first)
    for (const bundle of bundles(kube)) t.equal(splitBundle(bundle).length, 2, 'old and new are trusted')
    await certificates([...args, '--kubeconfig', config])
    t.equal(stored(kube)['tls.crt'], first, 'it has not settled yet')
    await certificates([...args, '--kubeconfig', config, '--settle', '0s'])
    const second = stored(kube)
    t.not(second['tls.crt'], first)
    for (const bundle of bundles(kube)) t.ok(sameBundle(bundle, second['ca.crt'] ?? ''))
    t.equal(
      splitBundle(second['ca.crt'] ?? '').length,
      1,
      'without a settling time, the old certificate is retired at once',
    )
  })

  await t.test("errors: name the object, and do not repeat the API server's response", async (t) => {
    const broken = args.map((arg) => arg.replace('gatehouse-hooks-tls', 'another-secret'))
    await t.rejects(certificates([...broken, '--kubeconfig', config]), {
      message: 'secret/another-secret: the API server answered 403',
    })
    await t.rejects(
      certificates([...args, 'nobody.gatehouse.dev', '--kubeconfig', config]),
      /at least one client does not trust/,
    )
    await t.rejects(certificates([...args, '--kubeconfig', '/nonexistent']), { code: 'INVALID_CONFIG' })
    await t.rejects(
      certificates([...args, '--kubeconfig', config, '--lifetime', '1h']),
      /--renew-before must be shorter/,
    )
  })
})

await t.test('docs/guides/install.md, without Helm', { skip: kubeMissing() }, async (t) => {
  t.setTimeout(240_000)
  const kube = await startKubeApiserver(t)
  const [, page = ''] = readFileSync('docs/guides/install.md', 'utf8').split('\n## Without Helm\n')
  const commands = (/```sh\n([^]*?)```/.exec(page)?.[1] ?? '')
    .split('\n')
    .filter((line) => line.startsWith('kubectl '))
    .map((line) => (line.split(' #')[0] ?? '').trim().split(/ +/).slice(1))

  await t.test('its commands install everything; a second run changes nothing', async (t) => {
    t.ok(commands.length >= 2)
    for (const command of commands) {
      const { code, stderr } = kube.kubectl(command)
      t.equal(code, 0, `kubectl ${command.join(' ')}: ${stderr}`)
    }
    kube.must(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s'])
    const { code, stdout, stderr } = kube.kubectl(commands.at(-1) ?? [])
    t.equal(code, 0, stderr)
    t.equal(stderr, '', 'no warnings')
    const changed = stdout.split('\n').filter((line) => line && !line.endsWith(' unchanged'))
    t.strictSame(changed, ['poddisruptionbudget.policy/gatehouse-hooks configured'])
    t.equal(kube.get(['compositecontrollers']).items.length, kinds.length)
    t.equal(kube.kubectl(['get', 'deployment', 'gatehouse-metacontroller', '-n', namespace]).code, 0)
  })

  await t.test("a user's own kustomization is complete and contains the chosen images", async (t) => {
    const folder = t.testdir({})
    symlinkSync(process.cwd(), join(folder, 'gatehouse'))
    const text = /```yaml\n([^]*?)```/.exec(page)?.[1] ?? ''
    // That component needs the Prometheus operator's definitions.
    writeFileSync(join(folder, 'kustomization.yaml'), text.replace(/^.*manifests\/monitoring\n/m, ''))
    const made = kube.must(['kustomize', folder])
    t.match(made, 'kind: CustomResourceDefinition')
    t.match(made, 'image: registry.example.com/gatehouse-hooks:0.1.0')
    t.match(made, 'value: registry.example.com/gatehouse:0.1.0')
    t.notMatch(made, /image: ghcr\.io\/gatehouse-dev/)
    t.match(kube.kubectl(['apply', '-k', folder]).stderr, /Job "gatehouse-certificates-.*field is immutable/s)
    const advice = /`kubectl (-n gatehouse-system delete job [^`]+)`/.exec(page)?.[1] ?? ''
    kube.must(advice.split(' '))
    const { code, stderr } = kube.kubectl(['apply', '-k', folder])
    t.equal(code, 0, stderr)
  })

  await t.test(
    'the namespace was deleted first: the remaining objects reject changes until they are removed',
    async (t) => {
      const metadata = { name: 'tools', namespace: 'default' }
      const group = JSON.stringify({
        apiVersion: 'gatehouse.dev/v1beta1',
        kind: 'MCPGroup',
        metadata,
        spec: {},
      })
      kube.must(['delete', 'service', 'gatehouse-hooks', '-n', namespace])
      t.match(kube.kubectl(['apply', '-f', '-'], group).stderr, 'failed calling webhook')
      const [, removal = ''] = page.split('If you deleted the namespace first')
      const command = /```sh\nkubectl ([^\n]+)/.exec(removal)?.[1] ?? ''
      kube.must(command.split(' '))
      kube.must(['apply', '-f', '-'], group)
      kube.must(['delete', 'mcpgroup', 'tools', '-n', 'default'])
      const kinds = 'validatingwebhookconfiguration,compositecontrollers,clusterroles,clusterrolebindings'
      t.notMatch(kube.must(['get', kinds, '-o', 'name']), 'gatehouse')
    },
  )
})
