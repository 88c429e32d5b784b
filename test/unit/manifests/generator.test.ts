/** The generated manifests match the hooks' registry and the schemas, without manual changes. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import t from 'tap'
import { idOf, kustomized, manifestsFolder, objectsIn } from '../../helpers/hooks/manifests.ts'

const root = resolve(import.meta.dirname, '../../..')

function generate(at: string, ...args: string[]) {
  const ran = spawnSync(process.execPath, [join(at, 'manifests/generate/main.ts'), ...args], {
    encoding: 'utf8',
  })
  return { code: ran.status, output: ran.stdout + ran.stderr }
}

await t.test('generated manifests: are current', async (t) => {
  const { code, output } = generate(root, '--check')
  t.equal(code, 0, output)
})

await t.test(
  '--check: names stale, missing and unexpected files, changes nothing, and exits with 1',
  async (t) => {
    const copy = mkdtempSync(join(tmpdir(), 'gatehouse-manifests-'))
    t.teardown(() => rmSync(copy, { recursive: true, force: true }))
    cpSync(manifestsFolder, join(copy, 'manifests'), { recursive: true, verbatimSymlinks: true })
    for (const name of ['hooks', 'schemas', 'node_modules', 'package.json']) {
      symlinkSync(join(root, name), join(copy, name))
    }
    t.equal(generate(copy, '--check').code, 0)
    writeFileSync(join(copy, 'manifests/base/admission.yaml'), 'kind: Nothing\n')
    writeFileSync(join(copy, 'manifests/base/extra.yaml'), '')
    rmSync(join(copy, 'manifests/chart/definitions/mcpgroups.yaml'))
    const { code, output } = generate(copy, '--check')
    t.equal(code, 1)
    t.match(output, 'stale: manifests/base/admission.yaml')
    t.match(output, 'stale: manifests/chart/definitions/mcpgroups.yaml')
    t.match(output, 'not generated: manifests/base/extra.yaml')
    t.match(output, 'node manifests/generate/main.ts')
    t.equal(generate(copy, '--check').code, 1, 'nothing was repaired by looking')
    t.equal(generate(copy).code, 0)
    t.equal(generate(copy, '--check').code, 0, 'writing fixes it')
  },
)

const kubectl = spawnSync('kubectl', ['version', '--client']).status === 0
for (const folder of [
  '',
  'overlays/cert-manager',
  'overlays/everything',
  'overlays/private-metacontroller',
]) {
  const skip = !kubectl && 'no kubectl in PATH'
  await t.test(
    `kubectl kustomize manifests/${folder}: builds the objects of the files`,
    { skip },
    async (t) => {
      const ran = spawnSync('kubectl', ['kustomize', join(manifestsFolder, folder)], {
        encoding: 'utf8',
        maxBuffer: 2 ** 26,
      })
      t.equal(ran.status, 0, ran.stderr)
      t.equal(ran.stderr, '', 'no warnings')
      t.strictSame(objectsIn(ran.stdout).map(idOf).toSorted(), kustomized(folder).map(idOf).toSorted())
      if (folder === 'overlays/cert-manager') t.match(ran.stdout, 'cert-manager.io/inject-ca-from')
    },
  )
}

await t.test('kustomization: includes every definition', async (t) => {
  const crds = kustomized().filter(({ kind }) => kind === 'CustomResourceDefinition')
  t.ok(crds.length >= 12)
})
