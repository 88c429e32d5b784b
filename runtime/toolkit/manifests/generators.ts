/**
 * Generates the Secrets and ConfigMaps defined by kustomizations, for runs without kustomize.
 *
 * Supports `secretGenerator` and `configMapGenerator` with `envs`, `literals` and `files`. Generated names have no hash
 * suffix, because other objects refer to them by name. Files outside the kustomization's folder are rejected, as in
 * kustomize.
 */
import { basename, resolve, sep } from 'node:path'
import { type Fields, fieldsOf, listOf, invalidConfig } from '../../../schemas/index.ts'
import { readTextFile } from '../../config/index.ts'
import type { LocalObject } from './objects.ts'
import { type Kustomization, readKustomizations } from './kustomizations.ts'

/** Returns the objects that the kustomizations in the folders of `paths` generate. Throws INVALID_CONFIG. */
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
    ...texts(generator['envs']).flatMap((path) => parseLines(read(folder, path, file))),
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
  if (!whole.startsWith(folder + sep))
    throw invalidConfig(`${file}: ${path} is outside the kustomization's folder`)
  return readTextFile(whole, `${file}: ${path}`)
}

/** Parses `NAME=value` lines. Skips blank lines and comments. Values are kept unchanged, including quotes. */
function parseLines(text: string): [string, string][] {
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
