/**
 * Lists the npm packages in a bundle with their licenses. Derives the list from esbuild's inputs, so it contains
 * exactly the shipped packages.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface ShippedPackage {
  readonly name: string
  readonly version: string
  /** License of the package: the SPDX expression from package.json. */
  readonly license: string
  /** Contents of the package's license and notice files. */
  readonly texts: readonly string[]
}

/** Returns the packages in a bundle's input paths, sorted by name and version. */
export function packagesOf(root: string, inputs: readonly string[]): readonly ShippedPackage[] {
  const folders = new Set(inputs.map(packageFolder).filter((folder) => folder !== undefined))
  const packages = [...folders].map((folder) => readPackage(join(root, folder)))
  const unique = new Map(packages.map((one) => [`${one.name}@${one.version}`, one]))
  return [...unique.keys()].sort().map((key) => unique.get(key) as ShippedPackage)
}

/** Converts `node_modules/a/node_modules/@b/c/lib/x.js` to `node_modules/a/node_modules/@b/c`. */
function packageFolder(path: string): string | undefined {
  return /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]
}

interface Manifest {
  readonly name: string
  readonly version: string
  readonly license?: string | { readonly type: string }
}

function readPackage(folder: string): ShippedPackage {
  const manifest: Manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const { name, version, license = 'see its license file' } = manifest
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file))
  const texts = files
    .map((file) => join(folder, file))
    .filter((path) => existsSync(path))
    .map((path) => readFileSync(path, 'utf8').trim())
  return { name, version, license: typeof license === 'string' ? license : license.type, texts }
}

/** Returns the text of the license file that is shipped with a bundle: the licenses of all packages. */
export function noticesOf(program: string, packages: readonly ShippedPackage[]): string {
  const parts = packages.map(({ name, version, license, texts }) => {
    const head = `${name} ${version} (${license})`
    const missing = license.includes('Apache-2.0')
      ? 'The package has no license file. The text of Apache-2.0 is in the LICENSE file next to this one.'
      : `The package has no license file; it declares ${license}.`
    const body = texts.length > 0 ? texts.join('\n\n') : missing
    return `${'-'.repeat(80)}\n${head}\n${'-'.repeat(80)}\n\n${body}\n`
  })
  return `${program} contains the following third-party packages.\n\n${parts.join('\n')}`
}

/**
 * Returns a CycloneDX 1.6 list of the packages. Omits the date, because the same inputs must produce the same bytes.
 */
export function sbomOf(program: string, programVersion: string, packages: readonly ShippedPackage[]): string {
  const components = packages.map(({ name, version, license }) => ({
    type: 'library',
    name,
    version,
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
    licenses: /^[\w.+-]+$/.test(license) ? [{ license: { id: license } }] : [{ expression: license }],
  }))
  const document = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { type: 'application', name: program, version: programVersion } },
    components,
  }
  return `${JSON.stringify(document, null, 2)}\n`
}
