/**
 * Secrets and ConfigMaps that a kustomization beside the manifests generates, for runs without kustomize.
 *
 * `secretGenerator` and `configMapGenerator` with `envs`, `literals` and `files`. Names get no hash: references here are
 * by name. Files outside of the kustomization's folder are refused, as kustomize refuses them.
 */
import { basename, resolve, sep } from 'node:path'
import { type Fields, fieldsOf, listOf, invalidConfig } from '../../../schemas/index.ts'
import { readTextFile } from '../../config/index.ts'
import type { LocalObject } from './objects.ts'
import { type Kustomization, readKustomizations } from './kustomizations.ts'

/** The objects that the kustomizations below the folders among `paths` generate. Throws INVALID_CONFIG. */
export function generatedObjects(paths: readonly string[]): LocalObject[] {
  return readKustomizations(paths).flatMap(objectsOf)
}

function objectsOf({ file, content: kustomization }: Kustomization): LocalObject[] {
  const of = (field: string, kind: string) =>
    listOf(kustomization[field]).map((generator) => objectOf(fieldsOf(generator), kind, file))
  return [...of('secretGenerator', 'Secret'), ...of('configMapGenerator', 'ConfigMap')]
}

function objectOf(generator: Fields, kind: string, file: string): LocalObject {
  const { name, namespace } = generator
  if (typeof name !== 'string') throw invalidConfig(`${file}: a generator has no name`)
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
  if (!whole.startsWith(folder + sep)) throw invalidConfig(`${file}: ${path} lies outside of its folder`)
  return readTextFile(whole, `${file}: ${path}`)
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
