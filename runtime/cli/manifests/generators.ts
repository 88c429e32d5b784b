/**
 * Secrets and ConfigMaps that a kustomization beside the manifests generates, for runs without kustomize.
 *
 * `secretGenerator` and `configMapGenerator` with `envs`, `literals` and `files`. Names get no hash: references here are
 * by name. Files outside of the kustomization's folder are refused, as kustomize refuses them.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join, resolve, sep } from 'node:path'
import { type Fields, fieldsOf, GatehouseError } from '../../../schemas/index.ts'
import { readYaml } from '../../config/index.ts'
import type { KubeObject } from '../local/objects.ts'

/** The objects that the kustomizations below the folders among `paths` generate. Throws INVALID_CONFIG. */
export function generatedObjects(paths: readonly string[]): KubeObject[] {
  return paths.filter(isFolder).flatMap(kustomizations).flatMap(objectsOf)
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

function kustomizations(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => !name.startsWith('.') && name !== 'node_modules')
    .flatMap((entry) => {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) return kustomizations(path)
      return /^kustomization\.ya?ml$/.test(entry.name) ? [path] : []
    })
}

function objectsOf(file: string): KubeObject[] {
  const { documents, violations } = readYaml(readFileSync(file, 'utf8'))
  const [violation] = violations
  if (violation) throw refused(`${file}:${violation.line}: not valid YAML: ${violation.message}`)
  const kustomization = fieldsOf(documents[0]?.value)
  const of = (field: string, kind: string) =>
    listOf(kustomization[field]).map((generator) => objectOf(fieldsOf(generator), kind, file))
  return [...of('secretGenerator', 'Secret'), ...of('configMapGenerator', 'ConfigMap')]
}

function objectOf(generator: Fields, kind: string, file: string): KubeObject {
  const { name, namespace } = generator
  if (typeof name !== 'string') throw refused(`${file}: a generator has no name`)
  const folder = resolve(file, '..')
  const values = [
    ...texts(generator['envs']).flatMap((path) => lines(read(folder, path, file))),
    ...texts(generator['literals']).map((text) => pairOf(text)),
    ...texts(generator['files']).map((text): [string, string] => {
      const [key, path] = text.includes('=') ? pairOf(text) : [basename(text), text]
      return [key, read(folder, path, file)]
    }),
  ]
  return {
    apiVersion: 'v1',
    kind,
    metadata: { name, ...(typeof namespace === 'string' && { namespace }) },
    [kind === 'Secret' ? 'stringData' : 'data']: Object.fromEntries(values),
  }
}

function read(folder: string, path: string, file: string): string {
  const whole = resolve(folder, path)
  if (!whole.startsWith(folder + sep)) throw refused(`${file}: ${path} lies outside of its folder`)
  try {
    return readFileSync(whole, 'utf8')
  } catch (cause) {
    throw new GatehouseError('INVALID_CONFIG', { detail: `${file}: ${path} cannot be read`, cause })
  }
}

/** `NAME=value` lines; blank ones and comments are skipped. Values are taken as they are, quotes included. */
function lines(text: string): [string, string][] {
  return text
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '' && !line.trimStart().startsWith('#'))
    .map((line) => pairOf(line))
}

function pairOf(text: string): [string, string] {
  const at = text.indexOf('=')
  return at < 0 ? [text.trim(), ''] : [text.slice(0, at).trim(), text.slice(at + 1)]
}

function texts(value: unknown): string[] {
  return listOf(value).filter((item) => typeof item === 'string')
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function refused(detail: string): GatehouseError {
  return new GatehouseError('INVALID_CONFIG', { detail })
}
