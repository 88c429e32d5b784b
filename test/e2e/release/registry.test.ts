/**
 * Publishes a release to a real OCI registry, and installs it on an empty cluster with the documented command: both
 * images (assembled as OCI layouts), the chart, the checksums, the package lists and the signatures. The node pulls the
 * images from the registry. Unlike a release, the test signs with its own keys instead of the workflow's identity.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { appendFileSync, copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t, { type Test } from 'tap'
import { helm, helmMissing } from '../../helpers/kube/helm.ts'
import {
  type Image,
  insideNamespaces,
  isInsideNamespaces,
  startCluster,
} from '../../helpers/kube/node/index.ts'
import {
  installationMissing,
  metacontrollerImage,
  quickstartServerImages,
  systemNamespace as system,
} from '../../helpers/kube/node/installation.ts'
import { manifestsFolder } from '../../helpers/hooks/manifests.ts'
import { pullImage, pushLayout, writeLayout } from '../../helpers/release/oci.ts'
import { makeSigner, registryMissing, startRegistry } from '../../helpers/release/registry.ts'
import { assembleRootfs, rootfsMissing } from '../../helpers/release/rootfs.ts'
import { home } from '../../../schemas/index.ts'

const version = '0.1.0'
const dockerfiles = { gatehouse: 'runtime/Dockerfile', 'gatehouse-hooks': 'hooks/Dockerfile' } as const
const names = Object.keys(dockerfiles) as readonly (keyof typeof dockerfiles)[]
/** Registry in the examples of the docs. */
const exampleRegistry = 'registry.example.com'

const missing = helmMissing() || installationMissing() || rootfsMissing() || registryMissing()

/** Returns the arguments of each `helm install` of a page. */
function installCommands(page: string): readonly (readonly string[])[] {
  const text = readFileSync(page, 'utf8').replaceAll(/\\\n\s*/g, '')
  return [...text.matchAll(/^ *helm (install [^\n]*)$/gm)].map(([, command = '']) =>
    command.trim().split(/ +/),
  )
}

async function scenario(t: Test): Promise<void> {
  t.setTimeout(600_000)
  const folder = t.testdir({ keys: {}, layouts: {}, roots: {}, files: {} })
  const at = (...path: readonly string[]) => join(folder, ...path)
  const host = await startRegistry(t)
  const signer = makeSigner(at('keys'))
  const digests: Record<string, string> = {}

  await t.test('push: both images, from reproducible OCI layouts', async (t) => {
    for (const name of names) {
      const image = assembleRootfs(dockerfiles[name], at('roots', name))
      const digest = writeLayout(at('layouts', name), image)
      await pushLayout(at('layouts', name), host, name, version)
      digests[name] = digest
      if (name === 'gatehouse-hooks') t.equal(writeLayout(at('layouts/again'), image), digest)
    }
  })

  await t.test('push: the chart', async (t) => {
    const packed = helm(['package', join(manifestsFolder, 'chart'), '--destination', at('files')])
    t.equal(packed.code, 0, packed.stderr)
    const file = at('files', `gatehouse-${version}.tgz`)
    const pushed = helm(['push', file, `oci://${host}/charts`, '--plain-http'])
    t.equal(pushed.code, 0, pushed.stderr)
    digests['charts/gatehouse'] =
      /Digest: (sha256:[0-9a-f]{64})/.exec(pushed.stdout + pushed.stderr)?.[1] ?? ''
  })
  if (!t.passing()) return

  await t.test(
    'signatures: the images and the chart verify; unsigned and different images do not',
    async (t) => {
      for (const [name, digest] of Object.entries(digests)) {
        const reference = `${host}/${name}@${digest}`
        t.match(
          signer.verify('verify', reference),
          { code: 10, stderr: /no signatures found/ },
          'not signed yet',
        )
        signer.sign('sign', reference)
        const verified = signer.verify('verify', `${host}/${name}:${version}`)
        t.equal(verified.code, 0, verified.stderr)
        t.match(verified.stdout, digest, 'prints the signed digest')
      }
      const root = at('another')
      mkdirSync(root)
      writeFileSync(join(root, 'added.js'), '')
      const another: Image = { root, entrypoint: [], cmd: [], env: {}, user: undefined, workdir: '/' }
      writeLayout(at('layouts/another'), another)
      await pushLayout(at('layouts/another'), host, 'gatehouse', 'moved')
      t.not(signer.verify('verify', `${host}/gatehouse:moved`).code, 0, 'a moved tag')
      mkdirSync(at('other-keys'))
      const otherSigner = makeSigner(at('other-keys'))
      t.not(otherSigner.verify('verify', `${host}/gatehouse:${version}`).code, 0, 'the key of another signer')
    },
  )

  await t.test(
    'packages: each image contains its package list, which is attested and has the version',
    async (t) => {
      for (const name of names) {
        const reference = `${host}/${name}@${digests[name]}`
        const list = at('roots', name, `usr/share/sbom/${name}.cdx.json`)
        const parsed = JSON.parse(readFileSync(list, 'utf8'))
        t.match(parsed, { bomFormat: 'CycloneDX', metadata: { component: { name, version } } })
        t.ok(parsed.components.length > 5, `${parsed.components.length} packages`)
        signer.sign('attest', '--type=cyclonedx', `--predicate=${list}`, reference)
        const { code, stdout, stderr } = signer.verify('verify-attestation', '--type=cyclonedx', reference)
        t.equal(code, 0, stderr)
        const { payload }: { payload: string } = JSON.parse(stdout.trim().split('\n')[0] ?? '')
        const statement = JSON.parse(Buffer.from(payload, 'base64').toString())
        t.equal(`sha256:${statement.subject[0].digest.sha256}`, digests[name], 'the subject is this image')
        t.same(statement.predicate.components.length, parsed.components.length)
      }
    },
  )

  await t.test(
    'files: the signed checksums cover every file; a changed file or list is rejected',
    async (t) => {
      execFileSync(process.execPath, ['manifests/bundle/package.ts', at('roots')])
      copyFileSync(at('files', `gatehouse-${version}.tgz`), at('files', `gatehouse-chart-${version}.tgz`))
      copyFileSync(at('roots', `gatehouse-${version}.tgz`), at('files', `gatehouse-${version}.tgz`))
      for (const name of names) copyFileSync(`dist/${name}.cdx.json`, at('files', `${name}.cdx.json`))
      copyFileSync('manifests/release/install.sh', at('files/install.sh'))
      const files = readdirSync(at('files'))
      t.equal(files.length, 5)
      const sums = files.map((file) => {
        const sum = createHash('sha256')
          .update(readFileSync(at('files', file)))
          .digest('hex')
        return `${sum}  ${file}\n`
      })
      writeFileSync(at('files/SHA256SUMS'), sums.join(''))
      const [list, bundle] = [at('files/SHA256SUMS'), at('files/SHA256SUMS.sigstore.json')]
      signer.sign('sign-blob', `--bundle=${bundle}`, list)
      // The second command of the page, as printed.
      const check =
        /\n(sha256sum --check .*)\n/.exec(readFileSync('docs/guides/verifying.md', 'utf8'))?.[1] ?? ''
      const checked = () => spawnSync('sh', ['-c', check], { cwd: at('files') }).status
      t.equal(signer.verify('verify-blob', `--bundle=${bundle}`, list).code, 0)
      t.equal(checked(), 0, check)
      appendFileSync(at('files/install.sh'), '\n')
      t.not(checked(), 0, 'a changed file')
      appendFileSync(list, `${'0'.repeat(64)}  other\n`)
      t.not(signer.verify('verify-blob', `--bundle=${bundle}`, list).code, 0, 'a changed list')
    },
  )

  const started = performance.now()
  const { kube, node } = await startCluster(t, async (images) => {
    const pulled = await Promise.all(
      names.map(
        async (name): Promise<readonly [string, Image]> => [
          `${host}/${name}:${version}`,
          await pullImage(join(images, name), host, name, version),
        ],
      ),
    )
    return new Map([...pulled, metacontrollerImage(images), ...quickstartServerImages(images)])
  })

  await t.test('helm install: the documented command installs from the registry', async (t) => {
    const commands = installCommands('docs/guides/install.md')
    const official = commands.find((words) => words.includes(`oci://${home.registry}/charts/gatehouse`)) ?? []
    const own = commands.find((words) => words.includes(`oci://${exampleRegistry}/charts/gatehouse`)) ?? []
    const sets = names.map((name) => `${exampleRegistry}/${name}:${version}`)
    t.same(
      official,
      own
        .filter((word) => word !== '--set' && !sets.some((value) => word.endsWith(`=${value}`)))
        .map((word) => word.replace(exampleRegistry, home.registry)),
      'the two commands differ only in the registry and the images',
    )
    t.ok(official.includes(version))
    const local = own.map((word) => word.replace(exampleRegistry, host))
    const { code, stderr } = helm([...local, '--plain-http', '--timeout', '5m'], kube)
    t.equal(code, 0, stderr || (await node.output()))
    const { spec } = kube.get(['deployment', 'gatehouse-hooks', '-n', system])
    t.equal(spec.template.spec.containers[0].image, `${host}/gatehouse-hooks:${version}`)
  })
  if (!t.passing()) throw new Error(await node.output())

  await t.test('a client calls a tool of the quickstart in a new namespace', async (t) => {
    kube.must(['create', 'namespace', 'team'])
    kube.must(['apply', '-n', 'team', '-k', join(manifestsFolder, 'examples/quickstart')])
    const ready = ['wait', '-n', 'team', 'vmcp/quickstart', '--for=condition=Ready', '--timeout=120s']
    t.equal(kube.kubectl(ready).code, 0)
    const { url } = kube.get(['vmcp', 'quickstart', '-n', 'team']).status
    const client = new Client({ name: 'release', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(new URL(url)))
    const result = await client.callTool({ name: 'everything_echo', arguments: { message: 'hello' } })
    t.match(JSON.stringify(result), 'Echo: hello')
    await client.close()
    const { items } = kube.get(['pods', '-n', 'team', '-l', 'app=virtualmcpserver'])
    t.equal(items[0].spec.containers[0].image, `${host}/gatehouse:${version}`)
    const seconds = ((performance.now() - started) / 1000).toFixed(1)
    t.comment(`chart from the registry: first tool call ${seconds} s after the start of the empty cluster`)
  })
}

t.setTimeout(600_000)

if (missing) t.test('a release in a registry', { skip: missing }, () => {})
else if (isInsideNamespaces()) await t.test('a release in a registry', scenario)
else await insideNamespaces(t, import.meta.filename)
