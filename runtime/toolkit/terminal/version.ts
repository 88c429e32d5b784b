import manifest from '../../../package.json' with { type: 'json' }
/** This build's version, from package.json; inlined by the bundler. */
export const version: string = manifest.version

/** This version's runtime image. */
export const runtimeImage = `ghcr.io/gatehouse-dev/gatehouse:${version}`
