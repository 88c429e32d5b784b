import manifest from '../../../package.json' with { type: 'json' }
/** Version of this build, from package.json; inlined by the bundler. */
export const version: string = manifest.version

/** Runtime image of this version. */
export const runtimeImage = `ghcr.io/gatehouse-dev/gatehouse:${version}`
