/** Every file that names the repository, an image or the npm package uses the addresses in `schemas/home.ts`. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { home, imageReference } from '../../../schemas/index.ts'

const root = resolve(import.meta.dirname, '../../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const { hostname: forge, pathname } = new URL(home.repository)
const [registryHost = '', ...registryFolder] = home.registry.split('/')

/**
 * Match public addresses that end with Gatehouse's name, and capture the host and the folder. `docker.io/library` is the
 * prefix of local images.
 */
const addresses = [
  /\b(?<host>github\.com|raw\.githubusercontent\.com|gitlab\.com|codeberg\.org)(?<folder>\/[\w.-]+\/gatehouse)\b/g,
  /\b(?<host>ghcr\.io|quay\.io|docker\.io(?!\/library\/)|registry\.gitlab\.com)(?<folder>\/[\w./-]+?)(?:\/charts)?\/gatehouse(?:-hooks)?\b/g,
]

function isOurs(host: string, folder: string): boolean {
  if (host === registryHost) return folder === `/${registryFolder.join('/')}`
  return (host === forge || host === 'raw.githubusercontent.com') && folder === pathname
}

t.test('no file contains another address of the project', (t) => {
  const files = execFileSync('git', ['ls-files', '-z', ':!*.png'], { cwd: root, encoding: 'utf8' })
  const wrong = files.split('\0').flatMap((path) => {
    if (path === '' || path === 'test/unit/release/home.test.ts') return []
    const text = read(path)
    return addresses.flatMap((address) =>
      [...text.matchAll(address)].flatMap(({ groups, index, 0: found }) =>
        isOurs(groups?.['host'] ?? '', groups?.['folder'] ?? '')
          ? []
          : [`${path}:${text.slice(0, index).split('\n').length} ${found}`],
      ),
    )
  })
  t.same(wrong, [])
  t.end()
})

t.test('the written files contain the repository, the registry and the package', (t) => {
  const manifest = JSON.parse(read('package.json'))
  t.match(manifest, {
    name: home.npm,
    homepage: `${home.repository}#readme`,
    repository: { url: `git+${home.repository}.git` },
    bugs: `${home.repository}/issues`,
  })
  const chart = parse(read('manifests/chart/values.yaml'))
  t.equal(chart.images.hooks, imageReference('gatehouse-hooks', manifest.version))
  t.equal(chart.images.runtime, imageReference('gatehouse', manifest.version))
  t.equal(parse(read('.github/workflows/release.yml')).env.REGISTRY, home.registry)
  for (const dockerfile of ['runtime/Dockerfile', 'hooks/Dockerfile'])
    t.match(read(dockerfile), `org.opencontainers.image.source="${home.repository}"`, dockerfile)
  for (const guide of ['install', 'verifying'])
    t.match(read(`docs/guides/${guide}.md`), `${home.registry}/gatehouse`, guide)
  t.end()
})

t.test('an image reference consists of the registry, the name and the tag', (t) => {
  t.equal(imageReference('gatehouse-hooks', '1.2.3'), `${home.registry}/gatehouse-hooks:1.2.3`)
  t.end()
})
