/**
 * Makes images without an image builder: a folder contains the files that an image adds to its base, and this machine's
 * file system is the base.
 *
 * Our own images follow the last stage of their Dockerfiles and use the output of `make build`, so that a missing file
 * and a wrong path, user or entrypoint fail.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, linkSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

const repository = resolve(import.meta.dirname, '../../../..')

export interface Image {
  /** Folder with the files that the image adds to its base. */
  readonly root: string
  readonly entrypoint: readonly string[]
  readonly cmd: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Numeric user; undefined is root. */
  readonly user: number | undefined
  readonly workdir: string
}

/** Mounts a folder for images. Layers of one file system cannot contain each other, and the base is this machine's. */
export function prepareImages(folder: string): void {
  mkdirSync(folder)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=755', 'tmpfs', folder])
}

const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Output of `manifests/bundle/compile.ts`. */
const compiledCode = '/app/compiled'

/** Returns the image that a Dockerfile of this repository describes. Throws for an unknown instruction. */
export function imageOfDockerfile(file: string, root: string): Image {
  const lines = readFileSync(join(repository, file), 'utf8').replaceAll(/\\\n/g, ' ').split('\n')
  const last = lines.findLastIndex((line) => line.startsWith('FROM '))
  let image: Image = { root, entrypoint: [], cmd: [], env: { PATH: path }, user: undefined, workdir: '/' }
  for (const line of lines.slice(last)) image = applied(image, line.trim())
  return image
}

function applied(image: Image, line: string): Image {
  const [instruction = '', ...words] = line.split(/\s+/)
  const rest = words.join(' ')
  switch (instruction) {
    case '':
    case '#':
    case 'LABEL':
    case 'EXPOSE':
    case 'STOPSIGNAL':
      return image
    case 'FROM':
      if (rest !== '${BASE}') throw new Error(`an unknown base: ${rest}`)
      return image
    case 'COPY':
      // A command that runs inside the image. `test/e2e/images.test.ts` covers it, and servers start without it.
      if (words.at(-1) === compiledCode) return image
      if (words[0] === '--from=node') copyOfNode(words, image.root)
      else copy(words, image.root)
      return image
    case 'ENV': {
      const [, name = '', value = ''] = /^([^=]+)=(.*)$/.exec(rest) ?? []
      return { ...image, env: { ...image.env, [name]: value } }
    }
    case 'USER':
      return { ...image, user: Number(rest.split(':')[0]) }
    case 'WORKDIR':
      return { ...image, workdir: rest }
    case 'ENTRYPOINT':
      return { ...image, entrypoint: JSON.parse(rest) }
    default:
      if (line.startsWith('#')) return image
      throw new Error(`an unknown instruction: ${line}`)
  }
}

/** The first stage builds the repository in /src. */
function copy(words: readonly string[], root: string): void {
  const [source = '', target = ''] = words.filter((word) => !word.startsWith('--'))
  const from = join(repository, source.replace(/^\/src\//, ''))
  if (!existsSync(from)) throw new Error(`COPY ${source}: nothing there; run make build first`)
  mkdirSync(dirname(join(root, target)), { recursive: true })
  cpSync(from, join(root, target), { recursive: true })
}

/** The stage `node` is an official image of Node. */
function copyOfNode([, source]: readonly string[], root: string): void {
  if (source === '/usr/local/bin/node') addNode(root)
  else if (source !== '/usr/local/LICENSE') throw new Error(`not known of the images of Node: ${source}`)
}

/** Node at the path of its official images. All images share one copy. */
function addNode(root: string): void {
  const shared = join(dirname(root), '.node')
  if (!existsSync(shared)) cpSync(process.execPath, shared)
  addFile(root, '/usr/local/bin/node', shared)
}

/** Returns an image that contains only one program. */
export function imageOfProgram(root: string, at: string, program: string): Image {
  addFile(root, at, program)
  return { root, entrypoint: [at], cmd: [], env: { PATH: path }, user: undefined, workdir: '/' }
}

/** Returns an image of a server from npm, like its publisher's Dockerfile: the package in /app, started by Node. */
export function imageOfPackage(root: string, name: string, start: Pick<Image, 'entrypoint' | 'cmd'>): Image {
  addNode(root)
  symlinkSync(join(repository, 'node_modules', name), join(root, 'app'))
  return { root, ...start, env: { PATH: path, NODE_ENV: 'production' }, user: undefined, workdir: '/app' }
}

function addFile(root: string, at: string, source: string): void {
  const target = join(root, at)
  mkdirSync(dirname(target), { recursive: true })
  try {
    linkSync(source, target)
  } catch {
    cpSync(source, target)
  }
}
