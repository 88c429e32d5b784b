/** The locks that `gatehouse proxy --tool-lock` enforces. */
import { readFileSync } from 'node:fs'
import { validateResource } from '../../../hooks/index.ts'
import { invalidConfig, pinScheme, runtimeToolLock, type RuntimeToolLock } from '../../../schemas/index.ts'
import { readManifests } from '../../toolkit/manifests/read.ts'
import { locksIn } from './targets.ts'

/** Throws INVALID_CONFIG when the file cannot be read, or has no lock for this name. */
export function proxyLocks(path: string, name: string): readonly RuntimeToolLock[] {
  const manifests = readManifests([path], () => readFileSync(0, 'utf8'))
  const locks = locksIn(manifests, (doc) => validateResource(doc).violations)
  const own = locks.filter(({ backendRef }) => backendRef.name === name)
  if (own.length > 0) return own.map((spec) => ({ scheme: pinScheme, ...runtimeToolLock(spec, name) }))
  const others = [...new Set(locks.map(({ backendRef }) => backendRef.name))].sort().slice(0, 10)
  const found = others.length > 0 ? `it has locks for ${others.join(', ')}` : 'it has no MCPToolLock'
  throw invalidConfig(`--tool-lock: ${path} has no lock for ${name}: ${found}`)
}
