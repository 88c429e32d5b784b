/** The CI workflows: their commands exist, published names match the manifests, and permissions are minimal. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { manifestsFolder } from '../../helpers/hooks/manifests.ts'

interface Step {
  readonly uses?: string
  readonly run?: string
  readonly with?: Readonly<Record<string, unknown>>
}
interface Job {
  readonly permissions?: Readonly<Record<string, string>>
  readonly uses?: string
  readonly 'timeout-minutes'?: number
  readonly steps?: readonly Step[]
  readonly strategy?: { readonly matrix: { readonly include: readonly Readonly<Record<string, string>>[] } }
}
interface Workflow {
  readonly permissions: unknown
  readonly env?: Readonly<Record<string, string>>
  readonly jobs: Readonly<Record<string, Job>>
}

const folder = '.github/workflows'
const names = readdirSync(folder)
const read = (name: string): Workflow => parse(readFileSync(join(folder, name), 'utf8'))
const jobs = names.flatMap((name) =>
  Object.entries(read(name).jobs).map(([id, job]) => ({ id: `${name} ${id}`, job })),
)
const steps = jobs.flatMap(({ id, job }) => (job.steps ?? []).map((step) => ({ id, step })))

/** Every write permission has a reason here. */
const writes: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'release.yml images': { packages: 'pushes images', 'id-token': 'signs them' },
  'release.yml chart': { packages: 'pushes the chart', 'id-token': 'signs it' },
  'release.yml package': { 'id-token': 'publishes with provenance' },
  'release.yml page': { contents: 'makes the release', 'id-token': 'signs the checksums' },
}

t.test('permissions: none for the workflow, and for each job only what it writes', async (t) => {
  for (const name of names) t.strictSame(read(name).permissions, {}, name)
  for (const { id, job } of jobs) {
    const { permissions = {} } = job
    t.ok(Object.keys(permissions).length > 0, `${id}: declares its permissions`)
    const written = Object.entries(permissions).filter(([, value]) => value !== 'read')
    t.strictSame(written.map(([key]) => key).toSorted(), Object.keys(writes[id] ?? {}).toSorted(), id)
    t.ok(job.uses !== undefined || job['timeout-minutes'] !== undefined, `${id}: ends`)
  }
})

t.test(
  'actions: pinned to a commit with the version in a comment, and a checkout keeps no credential',
  async (t) => {
    for (const name of names) {
      const lines = readFileSync(join(folder, name), 'utf8').split('\n')
      for (const line of lines.filter((text) => /\buses: (?!\.\/)/.test(text)))
        t.match(line, /uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/, `${name}: ${line.trim()}`)
    }
    const versions = new Map<string, string>()
    for (const { id, step } of steps) {
      const [action = '', commit = ''] = (step.uses ?? '').split('@')
      t.equal(versions.get(action) ?? commit, commit, `${id}: one version of ${action}`)
      versions.set(action, commit)
      if (action === 'actions/checkout') t.equal(step.with?.['persist-credentials'], false, id)
    }
  },
)

t.test('commands: exist, and no untrusted text becomes part of a script', async (t) => {
  const targets = new Set(readFileSync('Makefile', 'utf8').match(/^[a-z-]+(?=:)/gm))
  for (const { id, step } of steps) {
    const { run = '' } = step
    t.notMatch(run, '${{', `${id}: values come by the environment`)
    for (const [, target = ''] of run.matchAll(/\bmake ([a-z-]+)/g))
      t.ok(targets.has(target), `make ${target}`)
    for (const [, path = ''] of run.matchAll(/\b(?:node|bash|helm package) ([\w./-]+)/g))
      t.ok(existsSync(path), `${id}: ${path}`)
  }
  for (const { id, job } of jobs) if (job.uses) t.ok(existsSync(job.uses), `${id}: ${job.uses}`)
  t.ok(
    steps.some(({ step }) => step.run === 'bash .ci/run'),
    'CI runs the documented commands',
  )
})

t.test('names: images, chart and identity match the manifests and docs', async (t) => {
  const { env, jobs } = read('release.yml')
  const registry = env?.['REGISTRY']
  const values: { images: Record<string, string> } = parse(
    readFileSync(join(manifestsFolder, 'chart/values.yaml'), 'utf8'),
  )
  const built = jobs['images']?.strategy?.matrix.include ?? []
  t.strictSame(
    built.map(({ image }) => `${registry}/${image}`).toSorted(),
    [values.images['runtime'], values.images['hooks']].map((image) => `${image?.split(':')[0]}`).toSorted(),
  )
  for (const { dockerfile = '', image } of built)
    t.match(readFileSync(dockerfile, 'utf8'), `image.title="${image}"`, dockerfile)
  const page = readFileSync('docs/guides/verifying.md', 'utf8')
  for (const { image } of built) t.match(page, image)
  t.match(page, `${registry}/charts/gatehouse:`)
  const { repository }: { repository: { url: string } } = JSON.parse(readFileSync('package.json', 'utf8'))
  const source = repository.url.replace(/^git\+|\.git$/g, '')
  t.match(page, `identity=${source}/${folder}/release.yml@refs/tags/v`)
})
