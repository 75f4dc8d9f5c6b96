"""The Textual front end: the only part of specchat that imports textual."""
