import manifest from '../../../package.json' with { type: 'json' }
/** This build's version, from package.json; inlined by the bundler. */
export const version: string = manifest.version

/** The runtime image for this version. */
export const runtimeImage = `ghcr.io/gatehouse-dev/gatehouse:${version}`
