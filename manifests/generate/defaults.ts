/** An installation's defaults, read from the chart's `values.yaml` so that the plain manifests and the chart agree. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parse } from 'yaml'

const valuesFile = resolve(import.meta.dirname, '../chart/values.yaml')

export interface Defaults {
  readonly namespace: string
  readonly version: string
  /** Suffix for the name of the certificate Job. A Job is immutable, so each version creates a new Job. */
  readonly revision: string
  /** Returns the value at a path such as `hooks.replicas`. Throws for an unknown path. */
  value(path: string): unknown
  /** Returns the value at a path as text. */
  text(path: string): string
}

/** Reads the defaults. `version` is the project's version. */
export function readDefaults(version: string): Defaults {
  const values: unknown = parse(readFileSync(valuesFile, 'utf8'))
  const value = (path: string): unknown => {
    const found = path.split('.').reduce(memberOf, values)
    if (found === undefined) throw new Error(`values.yaml has no ${path}`)
    return found
  }
  return {
    namespace: 'gatehouse-system',
    version,
    revision: version.replaceAll(/[^a-z0-9]/gi, '-').toLowerCase(),
    value,
    text: (path) => String(value(path)),
  }
}

function memberOf(object: unknown, key: string): unknown {
  return typeof object === 'object' && object !== null
    ? Object.entries(object).find(([name]) => name === key)?.[1]
    : undefined
}
