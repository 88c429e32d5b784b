/** The version of this build: the one in package.json, inlined by the bundler. */
import manifest from '../../../package.json' with { type: 'json' }

export const version: string = manifest.version

/** The image that pods of this version run. */
export const runtimeImage = `ghcr.io/gatehouse-dev/gatehouse:${version}`
