/**
 * Loads large libraries synchronously on first use, which saves memory in servers that do not need them. When running
 * from source, the libraries are the files in this folder. In a build, the libraries are the files `<name>.js` (or
 * `.mjs`) next to the program (`manifests/bundle/options.ts` lists them).
 */
import { createRequire } from 'node:module'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

export type PartName = 'cel-library' | 'pattern-library' | 'schema-library'

/** Returns the part's exports. */
export function loadPart(name: PartName): unknown {
  const here = import.meta.url
  return createRequire(here)(`./${name}${extname(fileURLToPath(here))}`)
}
