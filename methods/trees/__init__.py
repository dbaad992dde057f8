"""Label trees (Parabel, Bonsai) and forests of document trees (FastXML, PfastreXML)."""
