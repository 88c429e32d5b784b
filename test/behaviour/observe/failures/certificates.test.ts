/** What goes wrong with the certificate that a server shows: told alike everywhere. */
import t from 'tap'
import { certificateFailures } from '../../../helpers/failures/certificates.ts'
import { tellAlike } from '../../../helpers/failures/views.ts'

tellAlike(t, certificateFailures)
