/**
 * Addresses at which the project is published. A fork changes this file and runs `make schemas`. Then
 * `test/unit/release/home.test.ts` lists the lines in package.json, docs, workflows and Dockerfiles that still contain
 * the old address.
 */
export const home = {
  /** URL of the repository. */
  repository: 'https://github.com/gatehouse-dev/gatehouse',
  /** Registry and folder of the images; the chart is in its subfolder `charts`. */
  registry: 'ghcr.io/gatehouse-dev',
  /** Name of the npm package. */
  npm: '@gatehouse-dev/gatehouse',
} as const

/** Returns the reference of one of our images. */
export function imageReference(name: 'gatehouse' | 'gatehouse-hooks', tag: string): string {
  return `${home.registry}/${name}:${tag}`
}
