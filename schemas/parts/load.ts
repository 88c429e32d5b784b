/**
 * Parts of the program that few need: large libraries, loaded with their first use and at once, so that a server without that
 * use does not hold them in memory. From source they are the files of this folder; in a build they are `<name>.js` (or
 * `.mjs`) beside the program (`manifests/bundle/options.ts` lists them).
 */
import { createRequire } from 'node:module'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

export type PartName = 'cel-library' | 'pattern-library' | 'schema-library'

/** What the part exports. */
export function loadPart(name: PartName): unknown {
  const here = import.meta.url
  return createRequire(here)(`./${name}${extname(fileURLToPath(here))}`)
}
